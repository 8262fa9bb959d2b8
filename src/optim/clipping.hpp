// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>
#include <tessera/optim/clip_config.hpp>

namespace tessera {

/// The sum of squares of v, added up in double, into sums(slot). An infinity or NaN in v shows in
/// it. Does not wait for the device. T: float, double.
template <class T>
void sum_of_squares(const Vector<const T>& v, const Vector<double>& sums, Size slot);

/// Every element of v into [-limit, limit], in place; NaN stays. T: float, double.
template <class T>
void clip_by_value(const Vector<T>& v, T limit);

}  // namespace tessera
