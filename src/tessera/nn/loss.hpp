// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>
#include <tessera/nn/loss_kind.hpp>

namespace tessera {

template <class State>
struct LossDetails {
  double scale = 1;            ///< multiplies the derivative before it is rounded
  double boundary_weight = 1;  ///< of LossKind::poisson
  // Of cross_entropy where ranks have some columns each.
  Size first_class = 0;            ///< number of the first column
  Size classes = -1;               ///< of all ranks; -1: this rank has all
  Matrix<const State> terms = {};  ///< (rows, 3 ranks): what cross_entropy_terms() gave on each
};

/// The local sum of the loss over prediction and target, both (rows, cols), into sums(slot), and,
/// unless `gradient` has no memory, its derivative by the prediction divided by `global_count`: the
/// sum of loss_count() over all ranks and microbatches of the batch. The sum itself is not divided.
/// rows may be 0: the sum is then 0. The derivative of |x| at 0 is 0, and a relative_l2 row with
/// prediction equal to target has none either; a target row of zeros gives infinity or NaN. A class
/// that is none of them gives NaN. Targets of cross_entropy are (rows, 1).
/// Does not wait for the device. T: float, double, BFloat16, Float16.
template <class T>
void loss_and_gradient(LossKind kind, const Matrix<const T>& prediction,
                       const Matrix<const StateOf<T>>& target, Size global_count,
                       const Vector<double>& sums, Size slot, const Matrix<T>& gradient,
                       const LossDetails<StateOf<T>>& details = {});

/// Adds to sums(slot) and sums(slot + 1) the squares of the errors of u at the points inside, and
/// of the solution there: prediction and target as LossKind::poisson has them, where the target's
/// second column is the solution.
template <class T>
void add_solution_error(const Matrix<const T>& prediction, const Matrix<const StateOf<T>>& target,
                        const Vector<double>& sums, Size slot);

/// What a rank knows of each row of which it has some columns, from number `first_class` on: the
/// largest logit, the sum of exp(logit - largest), and the target's logit, or 0 if another rank has
/// it. `terms`: (rows, 3).
template <class T>
void cross_entropy_terms(const Matrix<const T>& logits, const Matrix<const StateOf<T>>& target,
                         Size first_class, const Matrix<StateOf<T>>& terms);

}  // namespace tessera
