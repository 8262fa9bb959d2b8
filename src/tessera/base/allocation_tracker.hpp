// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <tessera/base/types.hpp>

namespace tessera {

/// Allocations of Kokkos in a scope.
struct AllocationCounts {
  Size allocations = 0;
  Size deallocations = 0;
  Size current_bytes = 0;  ///< allocated minus freed; may be negative
  Size peak_bytes = 0;     ///< highest value of current_bytes
};

/// Counts allocations of Views and kokkos_malloc during its life, from all threads: those whose
/// label begins with a prefix, in one memory space or in all. Scopes nest, and each has its own
/// counts.
///
/// Kokkos Tools callbacks are installed while any scope lives, and call those of a tool that was
/// loaded before. They slow down every kernel launch, so no scope may be open while steps are
/// timed. Kokkos must be initialized.
class AllocationScope {
 public:
  /// `space`: Kokkos' name of a memory space, such as "Cuda"; "" for all.
  explicit AllocationScope(std::string label_prefix = "", std::string space = "");
  ~AllocationScope();
  AllocationScope(const AllocationScope&) = delete;
  AllocationScope& operator=(const AllocationScope&) = delete;

  AllocationCounts total() const;
  Size allocations() const { return total().allocations; }
  Size current_bytes() const { return total().current_bytes; }
  Size peak_bytes() const { return total().peak_bytes; }

  /// Sets all counts to 0.
  void reset();

  /// Called by the hooks.
  void record(std::string_view space, std::string_view label, Size bytes, bool is_allocation);

 private:
  std::string label_prefix_, space_;
  AllocationCounts total_;
};

}  // namespace tessera
