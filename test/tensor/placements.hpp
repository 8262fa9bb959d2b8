// SPDX-License-Identifier: Apache-2.0
// Short names of placements, as papers write them.
#pragma once

#include <tessera/base/placement.hpp>

namespace tessera::test::placements {

inline const auto R = Placement::replicate();
inline const auto S0 = Placement::shard(0);
inline const auto S1 = Placement::shard(1);
inline const auto X = Placement::partial();

}  // namespace tessera::test::placements
