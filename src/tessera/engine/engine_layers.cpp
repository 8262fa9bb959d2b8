// SPDX-License-Identifier: Apache-2.0
// The engine's actions on one layer of one microbatch.
#include <tessera/base/alias.hpp>
#include <tessera/base/region.hpp>
#include <tessera/engine/engine.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/loss.hpp>

namespace tessera {

template <class T>
Size Engine<T>::rows_of_output(const Pass& pass, Size layer) const {
  if (!layouts_.by_rows(layer)) return pass.rows.count;
  const Communicator& ranks = groups_[Group::model];
  return balanced_split(pass.rows.count, ranks.size(), ranks.rank()).count;
}

template <class T>
Matrix<T> Engine<T>::output(const Pass& pass, Size layer) const {
  return activations_.output(layer, rows_of_output(pass, layer));
}

template <class T>
Matrix<T> Engine<T>::output_gradient(const Pass& pass, Size layer) const {
  return activations_.output_gradient(layer, rows_of_output(pass, layer));
}

/// Where a layer's product lies before its bias is added: where its output will be, or, if only
/// some of its rows will, where all of them find room.
template <class T>
Matrix<T> Engine<T>::product(const Pass& pass, Size layer) const {
  if (layouts_.by_rows(layer))
    return activations_.redistributed(pass.rows.count, model_.layers[layer].out);
  return activations_.preactivation(layer, pass.rows.count);
}

template <class T>
Matrix<const T> Engine<T>::input(const Pass& pass, Size layer) const {
  if (layouts_.to_input(layer) != Transition::keep) {
    const Size width =
        layer == layouts_.size() ? whole_model_.output_width() : model_.layers[layer].in;
    return activations_.redistributed(pass.rows.count, width);
  }
  if (layer == 0) return rows_of<const T>(pass.batch.x, pass.rows);
  return output(pass, layer - 1);
}

/// From the output of the layer before, or from the batch, into the one place of such inputs.
template <class T>
void Engine<T>::redistribute_input(const Pass& pass, Size layer) {
  const Region region("tessera::redistribute_input");
  const Size rows = pass.rows.count;
  const Matrix<const T> target = input(pass, layer);
  const Matrix<T> made = activations_.redistributed(rows, static_cast<Size>(target.extent(1)));
  if (layer == 0) return along_model_.slice(rows_of<const T>(pass.batch.x, pass.rows), 1, made);
  const Matrix<T> before = output(pass, layer - 1);
  const int dim = layouts_.by_rows(layer - 1) ? 0 : 1;
  if (layouts_.to_input(layer) == Transition::slice) return along_model_.slice(before, 1, made);
  along_model_.all_gather(before, dim, activations_.packed(rows, static_cast<Size>(made.extent(1))),
                          made);
}

template <class T>
void Engine<T>::forward(const Pass& pass, Size layer) {
  const Region region("tessera::forward");
  gemm_(Trans::no, Trans::no, 1, input(pass, layer), parameters_.kernel(layer), 0,
        product(pass, layer));
  if (layouts_.to_output(layer) == Transition::keep) activate(pass, layer);
}

template <class T>
void Engine<T>::redistribute_output(const Pass& pass, Size layer) {
  const Region region("tessera::redistribute_output");
  if (!layouts_.by_rows(layer)) return along_model_.all_reduce(product(pass, layer));
  const Size rows = rows_of_output(pass, layer);
  along_model_.reduce_scatter(product(pass, layer), 0, {}, activations_.preactivation(layer, rows));
}

/// Bias and activation where the product, or the own rows of its sum, lies.
template <class T>
void Engine<T>::activate(const Pass& pass, Size layer) {
  const Region region("tessera::activate");
  const Size rows = rows_of_output(pass, layer);
  bias_activation<T>(model_.layers[layer].activation, activations_.preactivation(layer, rows),
                     parameters_.bias(layer), activations_.output(layer, rows));
}

template <class T>
void Engine<T>::loss(const Pass& pass, Size slot) {
  const Region region("tessera::loss");
  const Size layers = layouts_.size();
  const Size rows = pass.rows.count;
  const Size width = whole_model_.output_width();
  const Size count =
      options_.sum_gradients ? 1 : loss_count(options_.loss, pass.batch.global_rows, width);
  // Where the output is sharded, the gradient of all of it goes where the gathered parts came from.
  const Matrix<T> gradient = layouts_.to_gradient(layers) == Transition::keep
                                 ? output_gradient(pass, layers - 1)
                                 : activations_.packed(rows, width);
  loss_and_gradient<T>(options_.loss, input(pass, layers),
                       rows_of<const T>(pass.batch.y, pass.rows), count, sums_,
                       slot * microbatches_ + pass.index, gradient);
}

/// From the gradient that `layer`, or the loss, gives to that of the output before.
template <class T>
void Engine<T>::redistribute_gradient(const Pass& pass, Size layer) {
  const Region region("tessera::redistribute_gradient");
  const Size rows = pass.rows.count;
  const Matrix<T> gradient = output_gradient(pass, layer - 1);
  if (layer == layouts_.size())
    return along_model_.slice(activations_.packed(rows, whole_model_.output_width()), 1, gradient);
  const Size given_width = model_.layers[layer].in;
  const Size width = whole_model_.layers[layer].in;
  const Matrix<T> given = activations_.redistributed(rows, given_width);
  const Matrix<T> packed = activations_.packed(rows, width);
  const int dim = layouts_.by_rows(layer - 1) ? 0 : 1;
  switch (layouts_.to_gradient(layer)) {
    case Transition::all_reduce:
      return along_model_.all_reduce(gradient);
    case Transition::reduce_scatter:
      return along_model_.reduce_scatter(given, dim, packed, gradient);
    case Transition::all_gather:
      return along_model_.all_gather(given, dim, packed, gradient);
    case Transition::slice:
      return along_model_.slice(given, dim, gradient);
    default:
      return;
  }
}

/// On the own rows; the bias is left to backward(), which has them all.
template <class T>
void Engine<T>::activate_backward(const Pass& pass, Size layer) {
  const Region region("tessera::activate_backward");
  const Size rows = rows_of_output(pass, layer);
  activation_bias_backward<T>(model_.layers[layer].activation,
                              activations_.preactivation(layer, rows),
                              activations_.output_gradient(layer, rows), Vector<T>(), false);
}

template <class T>
void Engine<T>::gather_gradient(const Pass& pass, Size layer) {
  const Region region("tessera::gather_gradient");
  along_model_.all_gather(output_gradient(pass, layer), 0, {}, product(pass, layer));
}

template <class T>
void Engine<T>::backward(const Pass& pass, Size layer) {
  const Region region("tessera::backward");
  const Size rows = pass.rows.count;
  const bool by_rows = layouts_.by_rows(layer);
  // The activation's part has been done on gathered rows.
  const Activation activation = by_rows ? Activation::identity : model_.layers[layer].activation;
  const Matrix<T> dz = by_rows ? product(pass, layer) : output_gradient(pass, layer);
  const Matrix<T> saved = by_rows ? dz : activations_.preactivation(layer, rows);
  Matrix<T> dx;
  if (layer > 0) {
    // What is redistributed takes the place of the layer's input, which no product needs any more.
    const Transition to_input = layouts_.to_input(layer);
    dx = to_input == Transition::keep ? output_gradient(pass, layer - 1)
                                      : activations_.redistributed(rows, model_.layers[layer].in);
  }
  const bool adds = pass.index > 0 && !state_.sharding.gradients;
  linear_backward<T>(gemm_, activation, input(pass, layer), parameters_.kernel(layer), saved, dz,
                     gradients_.kernel(layer), gradients_.bias(layer), dx, adds);
}

template class Engine<float>;
template class Engine<double>;

}  // namespace tessera
