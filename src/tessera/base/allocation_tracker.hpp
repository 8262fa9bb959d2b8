// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <tessera/base/types.hpp>

namespace tessera {

/// What Kokkos allocated and freed while a scope was open.
struct AllocationCounts {
  Size allocations = 0;
  Size deallocations = 0;
  Size current_bytes = 0;  ///< allocated minus freed; negative if older memory was freed
  Size peak_bytes = 0;     ///< the highest that current_bytes has been
};

/// Counts the allocations of Views and kokkos_malloc while it lives, in all memory spaces, from all
/// threads. Scopes nest, each with its own counts. With a prefix, only labels that begin with it.
///
/// The hooks (Kokkos Tools callbacks) are installed while any scope lives, and pass everything on
/// to a tool that was loaded before. They add overhead to every kernel launch, so no scope may be
/// open while steps are timed. To be used between Kokkos' initialisation and its end.
class AllocationScope {
 public:
  explicit AllocationScope(std::string label_prefix = "");
  ~AllocationScope();
  AllocationScope(const AllocationScope&) = delete;
  AllocationScope& operator=(const AllocationScope&) = delete;

  AllocationCounts total() const;
  /// By the name that Kokkos gives the memory space ("Host", "Cuda").
  std::map<std::string, AllocationCounts> by_space() const;

  Size allocations() const { return total().allocations; }
  Size current_bytes() const { return total().current_bytes; }
  Size peak_bytes() const { return total().peak_bytes; }

  /// Forgets what was counted: from here on differences to now.
  void reset();

  /// What the hooks report, one at a time.
  void record(std::string_view space, std::string_view label, Size bytes, bool is_allocation);

 private:
  std::string label_prefix_;
  AllocationCounts total_;
  std::map<std::string, AllocationCounts> by_space_;
};

}  // namespace tessera
