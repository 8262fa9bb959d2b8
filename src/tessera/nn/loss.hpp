// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <optional>

#include <tessera/base/split.hpp>
#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>
#include <tessera/nn/loss_kind.hpp>

namespace tessera {

template <class State>
struct LossDetails {
  double scale = 1;            ///< multiplies the derivative before it is rounded
  double boundary_weight = 1;  ///< LossKind::poisson: weight of the boundary
  // For cross_entropy when the columns are split over ranks or into blocks.
  Size first_class = 0;  ///< class of the first column
  Size classes = -1;     ///< number of all classes; -1 if the rank has all
  /// (rows, 3 blocks): cross_entropy_terms() of all ranks; or (rows, 2 blocks): the sums over ranks
  /// of relative_l2_terms(), if these have parts of samples.
  Matrix<const State> terms = {};
  /// relative_l2 with terms: the part of a sample's loss that the rank adds to the sum; absent: in
  /// proportion to its squares.
  std::optional<double> counted_part = {};
  // For cross_entropy when some targets do not count.
  double ignored = std::numeric_limits<double>::quiet_NaN();  ///< the number of these targets
  /// Device memory with the number of targets of the whole batch that count. The sum of the losses,
  /// and their derivative if `averages`, is multiplied by targets / max(*counted, 1). nullptr:
  /// by 1.
  const double* counted = nullptr;
  Size targets = 0;  ///< all targets of the whole batch
  bool averages = true;
};

/// Writes the local sum of the loss over prediction and target, both (rows, cols), to loss(0).
/// If `gradient` has memory, writes the derivative of the sum by the prediction, times
/// details.scale / global_count, to it; `global_count` is the sum of loss_count() over all ranks
/// and microbatches of the batch. Targets of cross_entropy are (rows, 1).
///
/// rows may be 0; the sum is then 0. The derivative is 0 for mae where p = t, and for a relative_l2
/// row with p = t. A relative_l2 row with t = 0 gives infinity or NaN, and a class number out of
/// range gives NaN, unless it is ignored: both are then 0. Throws Error (usage) for shapes that do
/// not match.
///
/// Does not wait for the device. Defined for float, double, BFloat16 and Float16.
template <class T>
void loss_and_gradient(LossKind kind, const Matrix<const T>& prediction,
                       const Matrix<const StateOf<T>>& target, Size global_count,
                       const Vector<double>& loss, const Matrix<T>& gradient,
                       const LossDetails<StateOf<T>>& details = {});

/// Sets count(0) to the number of targets that differ from `ignored`. Does not wait for the
/// device. State: float, double.
template <class State>
void count_targets(const Matrix<const State>& target, double ignored, const Vector<double>& count);

/// Adds the squared errors of u at the interior points to sums(0), and the squares of the
/// solution there to sums(1). Prediction and target are those of LossKind::poisson; the
/// second column of the target is the solution.
template <class T>
void add_solution_error(const Matrix<const T>& prediction, const Matrix<const StateOf<T>>& target,
                        const Vector<double>& sums);

/// Writes the terms of cross_entropy from a rank's columns, which begin at class `first_class`, to
/// `terms` (rows, 3 blocks), for each of the rank's blocks of `columns`, or without blocks for all
/// of its columns: the largest logit, the sum of exp(logit - largest), and the logit of the target
/// (0 if another block has it).
template <class T>
void cross_entropy_terms(const Matrix<const T>& logits, const Matrix<const StateOf<T>>& target,
                         Size first_class, const SplitPart& columns,
                         const Matrix<StateOf<T>>& terms);

/// Writes the sums of squares of p - t and of t to `terms` (rows, 2 blocks), for each block of the
/// positions of a row. Those of which the rank has none in `share` become 0.
template <class T>
void relative_l2_terms(const Matrix<const T>& prediction, const Matrix<const StateOf<T>>& target,
                       const SplitPart& share, const Matrix<StateOf<T>>& terms);

}  // namespace tessera
