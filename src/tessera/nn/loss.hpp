// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>
#include <tessera/nn/loss_kind.hpp>

namespace tessera {

/// The local sum of the loss over prediction and target, both (rows, cols), into sums(slot), and,
/// unless `gradient` has no memory, its derivative by the prediction divided by `global_count`: the
/// sum of loss_count() over all ranks and microbatches of the batch. The sum itself is not divided.
/// The derivative is multiplied by `loss_scale` before it is rounded to T.
/// rows may be 0: the sum is then 0. The derivative of |x| at 0 is 0, and a relative_l2 row with
/// prediction equal to target has none either; a target row of zeros gives infinity or NaN.
/// Does not wait for the device. T: float, double, BFloat16, Float16.
template <class T>
void loss_and_gradient(LossKind kind, const Matrix<const T>& prediction,
                       const Matrix<const StateOf<T>>& target, Size global_count,
                       const Vector<double>& sums, Size slot, const Matrix<T>& gradient,
                       double loss_scale = 1);

}  // namespace tessera
