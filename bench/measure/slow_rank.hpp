// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tessera::bench {

/// While it lives, every step of this rank takes longer by a share of what it computes: a planted
/// fault for tests of what a study finds. One at a time.
class SlowRank {
 public:
  explicit SlowRank(double share);
  ~SlowRank();
  SlowRank(const SlowRank&) = delete;
  SlowRank& operator=(const SlowRank&) = delete;
};

}  // namespace tessera::bench
