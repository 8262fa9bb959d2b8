// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/alias.hpp>
#include <tessera/engine/arenas.hpp>
#include <tessera/plan/memory.hpp>

namespace tessera {

template <class T>
ParameterArena<T> ParameterArena<T>::parameters(const ModelSpec& local, const StatePlan& state) {
  return {"tessera::parameters", "tessera::gathered_units", local, state, state.sharding.parameters,
          state.gathered,        &UnitPlan::gathered_begin};
}

template <class T>
ParameterArena<T> ParameterArena<T>::gradients(const ModelSpec& local, const StatePlan& state) {
  return {"tessera::gradients", "tessera::unit_gradients", local, state, state.sharding.gradients,
          state.unit_gradients, &UnitPlan::gradient_begin};
}

template <class T>
ParameterArena<T>::ParameterArena(const std::string& label, const std::string& buffer_label,
                                  const ModelSpec& local, const StatePlan& state, bool sharded,
                                  Size buffer, Size UnitPlan::*begin)
    : flat_(allocate_zeros<T>(label, sharded ? state.shares : state.whole)),
      buffer_(allocate_zeros<T>(buffer_label, sharded ? buffer : 0)) {
  for (std::size_t l = 0; l < local.layers.size(); ++l) {
    const LinearSpec& layer = local.layers[l];
    const UnitPlan& unit = state.units[l];
    T* const whole = sharded ? buffer_.data() + unit.*begin : flat_.data() + unit.whole.begin;
    T* const share = sharded ? flat_.data() + unit.share_begin : whole + unit.share.begin;
    units_.push_back(
        {whole, share, unit.share.count, layer.in, layer.out, layer.bias ? layer.out : 0});
  }
}

template <class T>
Vector<T> ParameterArena<T>::range(Range elements) const {
  return alias_vector(flat_.data() + elements.begin, elements.count);
}

template <class T>
Vector<T> ParameterArena<T>::share(Size unit) const {
  return alias_vector(units_[unit].share, units_[unit].shared);
}

template <class T>
Vector<T> ParameterArena<T>::unit(Size unit) const {
  const Unit& u = units_[unit];
  return alias_vector(u.whole, u.in * u.out + u.bias);
}

template <class T>
Matrix<T> ParameterArena<T>::kernel(Size layer) const {
  const Unit& u = units_[layer];
  return alias_matrix(u.whole, u.in, u.out);
}

template <class T>
Vector<T> ParameterArena<T>::bias(Size layer) const {
  const Unit& u = units_[layer];
  return alias_vector(u.whole + u.in * u.out, u.bias);
}

template <class T>
ActivationArena<T>::ActivationArena(const Layouts& layouts, const ModelSpec& local,
                                    const ModelSpec& whole, const LocalRows& rows) {
  const ActivationElements elements = activation_elements(layouts, local, whole, rows);
  flat_ = allocate_vector<T>("tessera::activations", elements.total());
  redistributed_ = allocate_vector<T>("tessera::redistributed", elements.redistributed);
  packed_ = allocate_vector<T>("tessera::packed", elements.packed);
  Size output = 0;
  Size preactivation = elements.outputs;
  const Size even_gradient = elements.outputs + elements.preactivations;
  const Size odd_gradient = even_gradient + elements.gradients[0];
  for (Size l = 0; l < layouts.size(); ++l) {
    const LinearSpec& layer = local.layers[l];
    const Size kept = rows.of(layouts, l) * layer.out;
    const bool keeps = needs_preactivation(layer.activation);
    const bool even = (layouts.size() - 1 - l) % 2 == 0;
    layers_.push_back(
        {layer.out, output, keeps ? preactivation : output, even ? even_gradient : odd_gradient});
    output += kept;
    if (keeps) preactivation += kept;
  }
}

template <class T>
Matrix<T> ActivationArena<T>::redistributed(Size rows, Size cols) const {
  return alias_matrix(redistributed_.data(), rows, cols);
}

template <class T>
Matrix<T> ActivationArena<T>::packed(Size rows, Size cols) const {
  return alias_matrix(packed_.data(), rows, cols);
}

template <class T>
Matrix<T> ActivationArena<T>::at(Size offset, Size rows, Size width) const {
  return alias_matrix(flat_.data() + offset, rows, width);
}

template <class T>
Matrix<T> ActivationArena<T>::output(Size layer, Size rows) const {
  return at(layers_[layer].output, rows, layers_[layer].width);
}

template <class T>
Matrix<T> ActivationArena<T>::preactivation(Size layer, Size rows) const {
  return at(layers_[layer].preactivation, rows, layers_[layer].width);
}

template <class T>
Matrix<T> ActivationArena<T>::output_gradient(Size layer, Size rows) const {
  return at(layers_[layer].gradient, rows, layers_[layer].width);
}

template class ParameterArena<float>;
template class ParameterArena<double>;
template class ActivationArena<float>;
template class ActivationArena<double>;

}  // namespace tessera
