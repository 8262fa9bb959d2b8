// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>

namespace tessera {

/// to = from, elementwise, rounded where the type of `to` is shorter. Does not wait for the device.
/// Between float and BFloat16 or Float16.
template <class From, class To>
void convert(const Vector<const From>& from, const Vector<To>& to);

}  // namespace tessera
