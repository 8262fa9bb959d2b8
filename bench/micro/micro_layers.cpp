// SPDX-License-Identifier: Apache-2.0
// Losses, and the layers of transformers and Fourier operators with their many small products.
#include <memory>

#include <fmt/format.h>

#include <tessera/base/alias.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/loss.hpp>
#include <tessera/nn/models/model_spec.hpp>

#include "micro/micro.hpp"

namespace tessera::bench {
namespace {

// The shapes of a small GPT and of a Fourier neural operator.
constexpr Size positions = 256, width = 512, heads = 8, head_width = width / heads;
constexpr Size vocabulary = 1024;
constexpr FourierGrid grid{32, 12, 32};

/// One layer with its own operands.
class LayerAlone {
 public:
  LayerAlone(const LayerSpec& layer, Size samples) : layer_(layer), call_{layer_, gemm_, samples} {
    const LayerKind& kind = *layer_.kind;
    const Size rows = samples * layer_.positions(), columns = layer_.out();
    for (std::size_t i = 0; i < layer_.inputs.size(); ++i) {
      const Size rows_in = samples * layer_.positions_of(i), columns_in = layer_.columns_of(i);
      call_.inputs[i] = drawn(rows_in, columns_in, 1 + i);
      call_.input_gradients[i] = drawn(rows_in, columns_in, 3);
    }
    for (std::size_t p = 0; p < layer_.parameters.size(); ++p) {
      const Size n = num_elements(layer_.parameters[p].shape);
      call_.parameters[p] = allocate_zeros<float>("tessera::bench::parameter", n);
      call_.parameter_gradients[p] = allocate_zeros<float>("tessera::bench::gradient", n);
    }
    call_.output = drawn(rows, columns, 5);
    call_.output_gradient = drawn(rows, columns, 6);
    call_.saved = drawn(rows, kind.saved_columns(layer_), 7);
    call_.scratch = allocate_zeros<float>("tessera::bench::scratch", kind.scratch(layer_, samples));
  }
  LayerAlone(const LayerAlone&) = delete;
  LayerAlone& operator=(const LayerAlone&) = delete;

  void run(bool forwards) const { forwards ? forward(call_) : backward(call_); }

  KernelWork work(bool forwards) const {
    const PassCount flops = count_flops({layer_}, call_.samples);
    const PassCount elements = count_operands(layer_, call_.samples);
    return {forwards ? flops.forward : flops.backward,
            (forwards ? elements.forward : elements.backward) * sizeof(float)};
  }

 private:
  LayerSpec layer_;
  Gemm<float> gemm_;
  LayerCall<float> call_;
};

void add_layer(MicroContext& context, const std::string& name, LayerSpec layer, Size samples) {
  for (const bool forwards : {true, false})
    context.add(
        fmt::format("layer/{}/{}/samples:{}", name, forwards ? "forward" : "backward", samples),
        [=] {
          const auto alone = std::make_shared<LayerAlone>(layer, samples);
          return MicroCase{[=] { alone->run(forwards); }, alone->work(forwards)};
        });
}

LayerSpec over(Size positions, LayerSpec layer) {
  layer.sizes.insert_or_assign('p', positions);
  return layer;
}

/// `target_columns`: of the targets; 1 for cross-entropy, whose targets are class numbers.
void add_loss(MicroContext& context, LossKind kind, Size rows, Size cols, Size target_columns) {
  context.add(fmt::format("loss/{}/rows:{}/cols:{}", name_of(kind), rows, cols), [=] {
    const Matrix<float> output = drawn(rows, cols, 1), gradient = drawn(rows, cols, 2);
    const auto targets = allocate_matrix<float>("tessera::bench::targets", rows, target_columns);
    Kokkos::deep_copy(targets, 3);
    const Vector<double> sums("tessera::bench::sums", 1);
    const double bytes = 2.0 * static_cast<double>(output.size()) * sizeof(float);
    return MicroCase{[=] { loss_and_gradient<float>(kind, output, targets, rows, sums, gradient); },
                     KernelWork{.bytes = bytes}};
  });
}

}  // namespace

void add_layer_benchmarks(MicroContext& context) {
  // The default of 1024 rows gives 16 sequences and 32 fields.
  const Size sequences = std::max<Size>(1, context.options().batch / 64);
  const Size fields = std::max<Size>(1, context.options().batch / 32);
  add_layer(context, "layer_norm", over(positions, layer_norm("y", "u", 0, width, "embed")),
            sequences);
  add_layer(context, "gelu",
            over(positions, pointwise("y", "u", 0, 4 * width, Activation::gelu, "mlp")), sequences);
  add_layer(context, "gelu_without_bias",
            over(positions, pointwise("y", "u", 0, 4 * width, Activation::gelu)), sequences);
  add_layer(context, "attention", over(positions, causal_attention("y", "u", 0, heads, head_width)),
            sequences);
  add_layer(context, "fourier", fourier("y", "u", 0, grid), fields);
  add_layer(context, "mode_product", mode_product("y", "u", 0, grid, 0), fields);
  add_layer(context, "inverse_fourier", inverse_fourier("y", "u", 0, grid), fields);
  const Size outputs = context.options().widths.back();
  add_loss(context, LossKind::mse, context.options().batch, outputs, outputs);
  add_loss(context, LossKind::cross_entropy, sequences * positions, vocabulary, 1);
}

}  // namespace tessera::bench
