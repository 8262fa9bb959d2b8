// SPDX-License-Identifier: Apache-2.0
// The work of the kernels of layers and losses.
#pragma once

#include <optional>

#include <tessera/predict/work.hpp>

namespace tessera {

/// Returns the part `share` of the work of a layer's pass, PassKind::forward or backward, on
/// `samples` samples. `layer` has a rank's extents. The softmax of scores in memory is left out.
Work layer_work(const LayerSpec& layer, Size samples, const PlanInput& input, PassKind pass,
                double share = 1, AttentionScores scores = AttentionScores::fused);

/// Returns the work of the softmax between the products of attention, and of dropout behind it. It
/// has kernels of its own if the scores are in memory; none otherwise.
std::optional<Work> softmax_work(const LayerSpec& layer, Size samples, const PlanInput& input,
                                 PassKind pass, double share, AttentionScores scores);

/// Returns the arithmetic of a loss and its gradient in exponential functions, if it may take
/// longer than the memory traffic; else 0. `elements` of the prediction are in rows of `columns`.
double functions_of_loss(LossKind kind, double elements, Size columns);

}  // namespace tessera
