// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace tessera {

/// "rank 2", "ranks 0-3,7". Ranks ascend.
std::string rank_list(std::span<const int> ranks);

}  // namespace tessera
