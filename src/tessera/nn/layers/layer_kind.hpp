// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
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

/// The work of kernels on one sample that may take longer than their memory traffic.
struct LayerFunctions {
  PassCount exponentials{};  ///< exponential and hyperbolic functions
  PassCount row_sums{};      ///< sums over a row, and searches in one
};

/// A term that a layer adds to the loss of a training.
struct LossTerm {
  std::string_view name;
  bool in_validation = true;  ///< false: it only guides the training, as a router's balance does
};

// Defaults of LayerKind.
inline LayerFunctions no_functions(const LayerSpec&) { return {}; }
inline Size one_at_once(const LayerSpec&) { return 1; }
inline Size no_scratch(const LayerSpec&, Size) { return 0; }
inline Size no_columns(const LayerSpec&) { return 0; }
inline bool always(const LayerSpec&) { return true; }
inline bool never(const LayerSpec&) { return false; }

/// One kind of layer: what plans must know about it, and its kernels. Each kind is in a file of its
/// own, with a function that makes its LayerSpec.
struct LayerKind {
  std::string_view name;
  /// The computation of the kind. The placements of its tensors follow from it.
  Expression expression;
  /// If true, `model` splits the index that the sharding rules name for the parameters or, without
  /// parameters, for the output. If false, the layer follows its inputs.
  bool rules_choose = false;

  /// The kernels read LayerCall::batch.
  bool reads_batch = false;
  /// Forward writes these parts of the loss to BatchFacts::loss. Needs reads_batch.
  std::span<const LossTerm> loss_terms{};

  /// Returns the matrix products of a kind whose expression does not tell them, as layer_products()
  /// does.
  LayerProducts (*products)(const LayerSpec& layer, Size samples) = nullptr;
  /// Returns how many of the products that its expression tells a kind makes at once.
  Size (*at_once)(const LayerSpec& layer) = one_at_once;
  /// Returns what the kernels compute beside products; `layer` has a rank's extents.
  LayerFunctions (*functions)(const LayerSpec& layer) = no_functions;
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

/// Returns true if a parameter of the layer is a kernel: a factor of matrix products with the first
/// input, which sum over an index of both. Biases, scales of norms and embeddings are not.
bool is_kernel(const LayerSpec& layer, std::size_t parameter);

/// Returns the matrix products on `samples` samples; `layer` has a rank's extents. FLOPs count them
/// once, without those that backward repeats. Those of y = x W follow from the expression of a
/// kind: the rows have the indices of x and y, the columns those of y and not of x, a sum has the
/// others, and there is a product for each value of the indices that all three have. x of the batch
/// has no gradient.
LayerProducts layer_products(const LayerSpec& layer, Size samples);

/// Returns true if the first input has class numbers: it has no index of columns. Kernels read them
/// in BatchFacts::x, because LayerCall::inputs may be rounded to the compute type.
inline bool reads_classes(const LayerSpec& layer) {
  return layer.kind->expression.inputs[0].indices.ends_with(',');
}

}  // namespace tessera
