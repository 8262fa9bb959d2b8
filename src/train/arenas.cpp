// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/alias.hpp>
#include <tessera/plan/memory.hpp>
#include <tessera/train/arenas.hpp>

namespace tessera {

template <class T>
ParameterArena<T>::ParameterArena(const std::string& label, const ModelSpec& model)
    : flat_(allocate_zeros<T>(label, model.num_parameters())) {
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const LinearSpec& layer = model.layers[l];
    units_.push_back(
        {model.unit_offset(static_cast<Size>(l)), layer.in, layer.out, layer.bias ? layer.out : 0});
  }
}

template <class T>
Vector<T> ParameterArena<T>::range(Size begin, Size count) const {
  return alias_vector(flat_.data() + begin, count);
}

template <class T>
Matrix<T> ParameterArena<T>::kernel(Size layer) const {
  const Unit& unit = units_[layer];
  return alias_matrix(flat_.data() + unit.begin, unit.in, unit.out);
}

template <class T>
Vector<T> ParameterArena<T>::bias(Size layer) const {
  const Unit& unit = units_[layer];
  return range(unit.begin + unit.in * unit.out, unit.bias);
}

template <class T>
ActivationArena<T>::ActivationArena(const ModelSpec& model, Size rows) {
  const ActivationElements elements = activation_elements(model, rows);
  flat_ = allocate_vector<T>("tessera::activations", elements.total());
  Size output = 0;
  Size preactivation = elements.outputs;
  const Size even_gradient = elements.outputs + elements.preactivations;
  const Size odd_gradient = even_gradient + elements.gradients[0];
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const LinearSpec& layer = model.layers[l];
    const bool keeps = needs_preactivation(layer.activation);
    const bool even = (model.layers.size() - 1 - l) % 2 == 0;
    layers_.push_back(
        {layer.out, output, keeps ? preactivation : output, even ? even_gradient : odd_gradient});
    output += rows * layer.out;
    if (keeps) preactivation += rows * layer.out;
  }
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
