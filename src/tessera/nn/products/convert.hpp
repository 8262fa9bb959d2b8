// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>

namespace tessera {

/// to = from for each element, rounded to the type of `to`. Does not wait for the device. Defined
/// between float and BFloat16 or Float16.
template <class From, class To>
void convert(const Vector<const From>& from, const Vector<To>& to);

}  // namespace tessera
