// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/rows.hpp>
#include <tessera/random/distributions.hpp>

namespace tessera {
namespace {

constexpr std::uint32_t noise_stream = 0x6e6f6973;  // no parameter has this stream

/// Standard normal noise of a microbatch: a function of the element's number in the global batch.
struct BatchNoise {
  Key key;
  Size first;  ///< number of the microbatch's first element

  template <class T>
  explicit BatchNoise(const LayerCall<T>& call) : first(call.batch.first * call.layer.out()) {
    const LayerSpec& layer = call.layer;
    key = fold_in(fold_in(tessera::key(layer.get<LatentDraw>().seed), noise_stream),
                  static_cast<std::uint32_t>(call.batch.step));
  }
  KOKKOS_INLINE_FUNCTION float operator()(Size i) const {
    return random_normal(key, static_cast<std::uint64_t>(first + i));
  }
};

/// z = mean + exp(logvar / 2) noise, or z = noise: a draw from the prior. Keeps the noise for
/// backward.
template <class T>
struct DrawLatent {
  const T *mean, *logvar;
  T* z;
  StateOf<T>* kept;
  BatchNoise noise;
  bool from_prior;

  KOKKOS_INLINE_FUNCTION void operator()(Size i) const {
    using Math = StateOf<T>;
    using std::exp;
    const Math drawn = kept[i] = Math(noise(i));
    z[i] = from_prior ? drawn : Math(mean[i]) + exp(Math(logvar[i]) / 2) * drawn;
  }
};

template <class T>
void reparameterize_forward(const LayerCall<T>& call) {
  using Math = StateOf<T>;
  const LayerSpec& layer = call.layer;
  const T *const mean = call.inputs[0].data(), *const logvar = call.inputs[1].data();
  const Size n = static_cast<Size>(call.output.extent(0) * call.output.extent(1));
  const DrawLatent<T> draw{
      mean, logvar, call.output.data(), call.saved.data(), BatchNoise(call), call.batch.from_prior};
  if (call.batch.loss == nullptr) return for_each("tessera::reparameterize"_label, n, draw);
  const double factor = layer.get<LatentDraw>().loss_weight / 2;
  sum_each(
      "tessera::reparameterize"_label, n,
      KOKKOS_LAMBDA(Size i, double& sum) {
        using std::expm1;
        draw(i);
        const double m = static_cast<Math>(mean[i]), l = static_cast<Math>(logvar[i]);
        sum += factor * (m * m + expm1(l) - l);
      },
      Kokkos::View<double, Kokkos::LayoutRight, MemSpace>(call.batch.loss));
}

/// dmean = dz + beta mean, dlogvar = dz eps exp(logvar/2) / 2 + beta (exp(logvar) - 1) / 2. Either
/// may alias dz.
template <class T>
void reparameterize_backward(const LayerCall<T>& call) {
  using Math = StateOf<T>;
  const T *const mean = call.inputs[0].data(), *const logvar = call.inputs[1].data();
  const T* const dz = call.output_gradient.data();
  T *const dmean = call.input_gradients[0].data(), *const dlogvar = call.input_gradients[1].data();
  const Math* const noise = call.saved.data();
  const LayerSpec& layer = call.layer;
  const Math weight =
      static_cast<Math>(layer.get<LatentDraw>().loss_weight) * call.batch.gradient_scale;
  for_each(
      "tessera::reparameterize_backward"_label,
      call.output_gradient.extent(0) * call.output_gradient.extent(1), KOKKOS_LAMBDA(Size i) {
        using std::exp;
        using std::expm1;
        const Math d = dz[i], l = logvar[i];
        if (dmean) dmean[i] = d + weight * mean[i];
        if (dlogvar) dlogvar[i] = (d * noise[i] * exp(l / 2) + weight * expm1(l)) / 2;
      });
}

constexpr LossTerm reparameterize_terms[] = {{"kl_divergence"}};

constexpr LayerKind reparameterize_kind{
    .name = "reparameterize",
    .expression = {.inputs = {{"s,c"}, {"s,c"}}, .output = "s,c", .whole = "c"},
    .reads_batch = true,
    .loss_terms = reparameterize_terms,
    .functions =
        [](const LayerSpec& layer) {
          // A normal number takes as long as 60 exponentials in a long loop.
          const auto elements = static_cast<double>(layer.out());
          return LayerFunctions{.exponentials = {70 * elements, 10 * elements}};
        },
    .reads_inputs = always,
    .saved_columns = [](const LayerSpec& layer) { return layer.out(); },
    .gradient_in_place = true,
    .forward = [](const auto& call) { reparameterize_forward(call); },
    .backward = [](const auto& call) { reparameterize_backward(call); }};

}  // namespace

LayerSpec reparameterize(std::string name, std::string unit, Size mean, Size logvar, Size width,
                         double beta, std::uint64_t seed) {
  LayerSpec layer{
      &reparameterize_kind, std::move(name), std::move(unit), {mean, logvar}, {{'c', width}}};
  layer.settings = LatentDraw{beta, seed};
  return layer;
}

}  // namespace tessera
