// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>
#include <tessera/optim/optimizer_config.hpp>

namespace tessera {

/// The sum of squares of v, added up in double, into sums(slot). An infinity or NaN in v shows in
/// it. Does not wait for the device. T: float, double.
template <class T>
void sum_of_squares(const Vector<const T>& v, const Vector<double>& sums, Size slot);

/// sums(slot) becomes 1 if an element of v is an infinity or NaN, and stays what it is if none is.
/// Does not wait for the device. T: float, double.
template <class T>
void find_not_finite(const Vector<const T>& v, const Vector<double>& sums, Size slot);

/// sums(first) = sums(first) + ... + sums(first + count - 1), one after the other.
void add_up(const Vector<double>& sums, Size first, Size count);

/// to += from, elementwise. T: float, double, BFloat16, Float16.
template <class T>
void accumulate(const Vector<const T>& from, const Vector<T>& to);

/// Every element of v into [-limit, limit], in place; NaN stays. T: float, double.
template <class T>
void clip_by_value(const Vector<T>& v, T limit);

}  // namespace tessera
