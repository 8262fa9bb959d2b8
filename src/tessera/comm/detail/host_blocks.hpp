// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include <tessera/base/site.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// Host memory from MPI, which knows best what its networks like. In huge pages if it is large.
class HostBlock {
 public:
  HostBlock() = default;  ///< nothing
  HostBlock(Size bytes, const Site& site);

  char* data() const { return memory_.get(); }
  Size bytes() const { return memory_ ? bytes_ : 0; }
  /// Never gives it back: the library may still write to it.
  void abandon() noexcept { static_cast<void>(memory_.release()); }

 private:
  struct Free {
    void operator()(char* memory) const noexcept;
  };
  std::unique_ptr<char[], Free> memory_;
  Size bytes_ = 0;
};

/// Blocks that are lent and given back, so that a warm call allocates none. Takes no more from the
/// system than the largest calls that were in flight at once.
class HostBlockPool {
 public:
  /// A block of at least `bytes`: the smallest free one that is large enough; else a new one, in
  /// place of a free one that is not.
  HostBlock take(Size bytes, const Site& site);
  void give_back(HostBlock block);

 private:
  std::vector<HostBlock> free_;  ///< from small to large
};

}  // namespace tessera
