// SPDX-License-Identifier: Apache-2.0
// Facts about a program that does some things in another way than Tessera, for predictions.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <tessera/base/names.hpp>

namespace tessera {

/// The place where attention keeps its scores: in caches, block by block, so that backward computes
/// them again; in memory; or there with dropout behind the softmax.
enum class AttentionScores : std::uint8_t { fused, scores_in_memory, scores_and_dropout };
template <>
inline constexpr std::array<std::string_view, 3> names_of<AttentionScores>{
    "fused", "scores_in_memory", "scores_and_dropout"};

/// The part that stages send of a tensor that all ranks of `model` hold: all of it from each rank,
/// or shares that the receivers gather (Narayanan et al. 2021).
enum class BoundaryMessages : std::uint8_t { whole, scattered };
template <>
inline constexpr std::array<std::string_view, 2> names_of<BoundaryMessages>{"whole", "scattered"};

/// The layers that Recomputed::block computes again: what the backward pass reads; every layer of
/// every block and its sums along `model`; or what backward reads without attention and every
/// second product.
enum class BlockRecomputation : std::uint8_t { needed, whole, half_of_products };
template <>
inline constexpr std::array<std::string_view, 3> names_of<BlockRecomputation>{"needed", "whole",
                                                                              "half_of_products"};

/// The logits that a cross-entropy reads: those of the model, or a copy in float32, by kernels of
/// one operation each.
enum class LossLogits : std::uint8_t { computed, float32 };
template <>
inline constexpr std::array<std::string_view, 2> names_of<LossLogits>{"computed", "float32"};

/// Facts about the program of a prediction ("Other programs" in README.md). They change the time of
/// a step, and neither plans nor their memory. The defaults are Tessera's own.
struct Software {
  AttentionScores attention = AttentionScores::fused;
  BoundaryMessages stage_messages = BoundaryMessages::whole;
  BlockRecomputation block_recomputation = BlockRecomputation::needed;
  LossLogits loss_logits = LossLogits::computed;
  friend bool operator==(const Software&, const Software&) = default;
};

}  // namespace tessera
