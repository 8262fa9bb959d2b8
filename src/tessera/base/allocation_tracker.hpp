// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
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

/// Counts allocations of Views and kokkos_malloc during its life, in all memory spaces and from all
/// threads. Scopes nest, and each has its own counts. A prefix restricts it to labels that begin
/// with it.
///
/// Kokkos Tools callbacks are installed while any scope lives, and call those of a tool that was
/// loaded before. They slow down every kernel launch, so no scope may be open while steps are
/// timed. Kokkos must be initialized.
class AllocationScope {
 public:
  explicit AllocationScope(std::string label_prefix = "");
  ~AllocationScope();
  AllocationScope(const AllocationScope&) = delete;
  AllocationScope& operator=(const AllocationScope&) = delete;

  AllocationCounts total() const;
  /// Returns the counts by Kokkos' name of the memory space ("Host", "Cuda").
  std::map<std::string, AllocationCounts> by_space() const;

  Size allocations() const { return total().allocations; }
  Size current_bytes() const { return total().current_bytes; }
  Size peak_bytes() const { return total().peak_bytes; }

  /// Sets all counts to 0.
  void reset();

  /// Called by the hooks.
  void record(std::string_view space, std::string_view label, Size bytes, bool is_allocation);

 private:
  std::string label_prefix_;
  AllocationCounts total_;
  std::map<std::string, AllocationCounts> by_space_;
};

}  // namespace tessera
