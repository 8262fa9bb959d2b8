// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tessera::bench {

/// While it lives, every step of this rank takes longer by a share of its computation: a planted
/// fault that shows whether a study finds it. Only one may live at a time.
class SlowRank {
 public:
  explicit SlowRank(double share);
  ~SlowRank();
  SlowRank(const SlowRank&) = delete;
  SlowRank& operator=(const SlowRank&) = delete;
};

}  // namespace tessera::bench
