// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tessera {

/// Returns a number of seconds as "0:07", "12:30" or "3:04:05".
std::string clock_text(double seconds);

}  // namespace tessera
