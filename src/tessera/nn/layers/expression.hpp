// SPDX-License-Identifier: Apache-2.0
// Index expressions: what a kind of layer computes, written as the indices of its tensors. From
// them follows where each tensor lies if an axis of the mesh splits an index, as in Mesh-TensorFlow
// (Shazeer et al. 2018) and GSPMD (Xu et al. 2021).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/nn/layers/layer_spec.hpp>

namespace tessera {

inline constexpr std::size_t max_layer_inputs = 2;
inline constexpr std::size_t max_layer_parameters = 2;

/// The indices of a tensor, each a letter, in the order of memory. A comma ends a dimension:
/// "sp,hd" is a matrix with the rows (s, p) and the columns (h, d).
struct Operand {
  std::string_view indices{};
  /// Indices of the gradient, if they are not `indices`: kernels read the tensor in a second role
  /// that has no gradient. Empty text if it has none at all.
  std::optional<std::string_view> gradient{};
  /// Number of the term that reads the operand. The output is the sum of all terms.
  int term = 0;

  constexpr std::string_view gradient_indices() const { return gradient.value_or(indices); }
};

/// The output has an element for each value of its indices. A term is a sum over the indices of its
/// operands that the output does not have. For example, a matrix product is y[s,p,o] =
/// sum over i of x[s,p,i] W[i,o].
struct Expression {
  Operand inputs[max_layer_inputs]{};
  Operand parameters[max_layer_parameters]{};
  std::string_view output{};
  /// Indices that no axis may split: those of a softmax, a norm or a capacity, which are no linear
  /// sums, and those that a kernel cannot cut.
  std::string_view whole{};
  /// Indices among these whose parts the kernels also take one after another.
  std::string_view streamed{};
};

/// Returns the dimension that an index runs over, as sharding rules name it. Several indices may
/// have one dimension: p and t are positions, e and f are experts. Empty for an index whose
/// dimension each layer names itself, such as "embed" or "mlp".
std::string_view dimension_of(char index);

/// Returns the indices that an axis may split, those of the output first. Every tensor with such an
/// index has it outermost in a dimension of memory, or as rows of each sample.
std::string splittable(const Expression& expression);

/// Returns true if the layer sums over an index: an operand has it, and the output does not. The
/// sum is linear, as in products, look-ups and transforms, or streamed, as in attention. Norms and
/// gates have no such sum: they combine the values of an index that is whole.
bool has_sums(const Expression& expression);

/// Returns the placements along a mesh axis that splits the index `split`. Empty: the axis splits
/// nothing. "pt": it splits p, and the tensors with t are streamed round a ring.
///
/// A tensor with the index is Shard, an output whose term sums over it is Partial, and the rest is
/// Replicate. Gradients are expressions too: that of an operand without the index sums over it,
/// and is Partial, if its term or the output has the index.
Layout derive(const Expression& expression, std::string_view split);

}  // namespace tessera
