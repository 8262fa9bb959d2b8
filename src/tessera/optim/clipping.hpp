// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>
#include <tessera/optim/optimizer_config.hpp>

namespace tessera {

/// Sets sum(0) to the sum of squares of v, added in double. It is not finite if v is not. Does
/// not wait for the device. T: float, double.
template <class T>
void sum_of_squares(const Vector<const T>& v, const Vector<double>& sum);

/// Returns the sum of squares of v, added in double. Waits for the device. T: float, double.
template <class T>
double sum_of_squares(const Vector<const T>& v);

/// Sets found(0) to 1 if an element of v is not finite, otherwise leaves it. Does not wait for
/// the device. T: float, double.
template <class T>
void find_not_finite(const Vector<const T>& v, const Vector<double>& found);

/// Adds sums(1), sums(2), ... to sums(0), in this order.
void add_up(const Vector<double>& sums);

/// Adds `from` to `to`. T: float, double, BFloat16, Float16.
template <class T>
void accumulate(const Vector<const T>& from, const Vector<T>& to);

/// Clamps every element of v to [-limit, limit]. NaN stays. T: float, double.
template <class T>
void clip_by_value(const Vector<T>& v, T limit);

}  // namespace tessera
