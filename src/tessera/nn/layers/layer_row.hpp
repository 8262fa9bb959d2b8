// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include <tessera/nn/layers/expression.hpp>
#include <tessera/nn/layers/layer_spec.hpp>

namespace tessera {

template <class T>
struct LayerCall;  // <tessera/nn/layers/layer_call.hpp>

struct LayerProducts {
  std::vector<GemmShape> forward, backward;
  std::vector<GemmShape> repeated{};  ///< products of forward that backward computes again
};

/// Time of a sum over a row or of a search in it beside its elements, in exponential functions: its
/// loop ends, and the lanes of a vector are joined. Measured; shuffles in a warp take about as
/// long.
inline constexpr double functions_per_sum = 12;

// Defaults of LayerRow.
inline LayerProducts no_products(const LayerSpec&, Size) { return {}; }
inline PassCount no_functions(const LayerSpec&, Size) { return {}; }
inline Size no_scratch(const LayerSpec&, Size) { return 0; }
inline Size no_columns(const LayerSpec&) { return 0; }
inline bool always(const LayerSpec&) { return true; }
inline bool never(const LayerSpec&) { return false; }

/// One kind of layer: what plans must know about it, and its kernels. A kind is one such row and a
/// function that makes its LayerSpec, in a file of its own.
struct LayerRow {
  std::string_view name;
  /// The computation of the kind. The placements of its tensors follow from it.
  Expression expression;
  /// The sharding rules choose the index that `model` splits: those of the parameters or, without
  /// parameters, of the output. Otherwise the layer keeps the split of its inputs.
  bool rules_choose = false;

  /// The kernels read LayerCall::batch.
  bool reads_batch = false;
  /// The kernels read x in BatchFacts::x, where it is not rounded to the compute type, and not in
  /// LayerCall::inputs. Needs reads_batch.
  bool reads_exact_x = false;
  /// The output is drawn from a distribution that the inputs describe.
  bool draws = false;
  /// Forward writes the parts of the loss that terms_of() names to BatchFacts::loss.
  bool adds_loss = false;

  /// Returns the matrix products on `samples` samples; `layer` has a rank's extents. FLOPs count
  /// these products only, each once: not those that backward repeats.
  LayerProducts (*products)(const LayerSpec& layer, Size samples) = no_products;
  /// Returns how often the kernels evaluate an exponential or hyperbolic function, plus
  /// functions_per_sum for each sum over a row, where these may take longer than the memory
  /// traffic; `layer` has a rank's extents.
  PassCount (*functions)(const LayerSpec& layer, Size samples) = no_functions;
  /// Returns the elements of LayerCall::scratch for `samples` samples; `layer` has a rank's
  /// extents.
  Size (*scratch)(const LayerSpec& layer, Size samples) = no_scratch;

  /// The kernels sum in the blocks of LayerCall::blocks.
  bool sums_in_blocks = false;

  /// Backward reads the inputs, or the output.
  bool (*reads_inputs)(const LayerSpec& layer) = never;
  bool (*reads_output)(const LayerSpec& layer) = never;
  /// Returns the columns of LayerCall::saved, which forward writes and backward reads. They are
  /// split along `model` as the output is.
  Size (*saved_columns)(const LayerSpec& layer) = no_columns;

  /// Number of the input that the output may overwrite; -1 if none.
  int in_place_of = -1;
  /// The gradient of one input may overwrite the gradient of the output.
  bool gradient_in_place = false;
  /// The gradients of the inputs equal that of the output; backward writes none.
  bool (*passes_gradient)(const LayerSpec& layer) = never;
  /// Backward can add to input gradients (LayerCall::add_input_gradients).
  bool adds_gradient = false;

  /// One generic lambda without captures, instantiated for each compute type.
  struct Kernel {
    template <class F>
    constexpr Kernel(F f) : of_float(f), of_double(f), of_bfloat16(f), of_float16(f) {}

    void run(const LayerCall<float>& call) const { of_float(call); }
    void run(const LayerCall<double>& call) const { of_double(call); }
    void run(const LayerCall<BFloat16>& call) const { of_bfloat16(call); }
    void run(const LayerCall<Float16>& call) const { of_float16(call); }

   private:
    void (*of_float)(const LayerCall<float>& call);
    void (*of_double)(const LayerCall<double>& call);
    void (*of_bfloat16)(const LayerCall<BFloat16>& call);
    void (*of_float16)(const LayerCall<Float16>& call);
  };
  Kernel forward, backward;
};

inline const LayerRow& row_of(const LayerSpec& layer) { return *layer.kind; }

/// Returns true if a parameter of the layer is a kernel, which means a factor of its matrix
/// products. Biases, scales of norms and embeddings are not.
inline bool is_kernel(const LayerSpec& layer, const ParameterSpec& parameter) {
  return row_of(layer).products != no_products && parameter.shape.size() > 1;
}

}  // namespace tessera
