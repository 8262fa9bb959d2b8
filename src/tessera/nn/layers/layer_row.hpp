// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include <tessera/nn/layers/layer_spec.hpp>

namespace tessera {

template <class T>
struct LayerCall;  // <tessera/nn/layers/layer_call.hpp>

struct LayerProducts {
  std::vector<GemmShape> forward, backward;
};
inline LayerProducts no_products(const LayerSpec&, Size) { return {}; }

inline Size no_scratch(const LayerSpec&) { return 0; }

inline bool always(const LayerSpec&) { return true; }
inline bool never(const LayerSpec&) { return false; }

/// The inputs, the output and all parameters that are vectors have equally many columns.
inline bool same_columns(const LayerSpec& layer) {
  return layer.in == layer.out &&
         std::all_of(layer.parameters.begin(), layer.parameters.end(), [&](const auto& parameter) {
           return parameter.shape.size() != 1 || parameter.shape[0] == layer.out;
         });
}

/// What one kind of layer is to a plan, and how it is computed. To add a kind, write such a row and
/// a function that makes its LayerSpec, in a file of its own.
struct LayerRow {
  std::string_view name;

  /// Ways to lie along `model`, the one without any sharding first.
  std::vector<Layout> (*layouts)(const LayerSpec& layer);
  /// Returns true if the kernels can compute with a rank's extents. Inputs, output and parameters
  /// are split one by one, and must still belong together.
  bool (*fits)(const LayerSpec& layer);
  /// The rules for its parameters, and for LayerSpec::columns, choose the layout, not only where
  /// its inputs come to lie.
  bool rules_choose = false;
  /// With sequence parallelism it works on its own rows also where its input is whole.
  bool prefers_rows = false;

  /// A row of the output depends on other rows of its sample.
  bool mixes_positions = false;
  /// LayerCall::batch is wanted. If such a kind reads the batch's x, it finds it there.
  bool reads_batch = false;
  /// Its output is drawn from a distribution that its inputs describe.
  bool draws = false;
  /// Forward writes a term of the loss to BatchFacts::loss. One layer of a model may.
  bool adds_loss = false;

  /// The matrix products on `samples` samples; `layer` with a rank's extents. Neither other work
  /// nor what backward computes again is counted as FLOPs, as is customary.
  LayerProducts (*products)(const LayerSpec& layer, Size samples) = no_products;
  /// Elements of LayerCall::scratch; `layer` with a rank's extents.
  Size (*scratch)(const LayerSpec& layer) = no_scratch;

  /// What backward reads beside the gradient of the output.
  bool (*reads_inputs)(const LayerSpec& layer) = never;
  bool (*reads_output)(const LayerSpec& layer) = never;
  /// Columns of what forward keeps for backward beside its inputs and output.
  Size kept_columns = 0;

  /// The input whose memory the output may take; -1: none.
  int in_place_of = -1;
  /// The gradients of the inputs are that of the output, or may be written over it.
  bool gradient_in_place = false;
  /// Backward changes no gradient that it is given: the inputs' gradients are the output's.
  bool (*passes_gradient)(const LayerSpec& layer) = never;
  /// Backward can add to the gradients of its inputs what they already hold.
  bool adds_gradient = false;

  /// A function for each compute type, of one generic lambda without captures.
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

}  // namespace tessera
