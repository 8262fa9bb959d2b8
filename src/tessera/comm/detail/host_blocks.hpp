// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include <tessera/base/site.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// Host memory from MPI_Alloc_mem, in huge pages and pinned for the GPU if it is large.
class HostBlock {
 public:
  HostBlock() = default;  ///< empty
  HostBlock(Size bytes, const Site& site);

  char* data() const { return memory_.get(); }
  Size bytes() const { return memory_ ? bytes_ : 0; }
  /// Never frees the memory, because the library may still write to it.
  void abandon() noexcept { static_cast<void>(memory_.release()); }

 private:
  struct Free {
    bool is_pinned;
    void operator()(char* memory) const noexcept;
  };
  std::unique_ptr<char[], Free> memory_;
  Size bytes_ = 0;
};

/// Lends blocks, so that a repeated call allocates nothing. Holds at most as many blocks as calls
/// were in flight at once.
class HostBlockPool {
 public:
  /// Returns the smallest free block of at least `bytes`. If there is none, allocates a block and
  /// frees the largest free one.
  HostBlock take(Size bytes, const Site& site);
  void give_back(HostBlock block);

 private:
  std::vector<HostBlock> free_;  ///< in ascending order of size
};

}  // namespace tessera
