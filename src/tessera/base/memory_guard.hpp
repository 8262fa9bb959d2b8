// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define TESSERA_GUARDS_MEMORY
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TESSERA_GUARDS_MEMORY
#endif
#endif
#ifdef TESSERA_GUARDS_MEMORY
#include <sanitizer/asan_interface.h>
#endif

namespace tessera {

/// Restricts a kernel to its operands in builds with AddressSanitizer. Does nothing in other
/// builds. Tensors share arenas, so the sanitizer alone does not detect an index that leaves its
/// tensor. A guard closes whole arenas and opens the operands. Its destructor opens all memory
/// again.
class MemoryGuard {
 public:
  MemoryGuard() = default;
  MemoryGuard(const MemoryGuard&) = delete;
  MemoryGuard& operator=(const MemoryGuard&) = delete;

#ifdef TESSERA_GUARDS_MEMORY
  static constexpr bool is_active = true;
  ~MemoryGuard() {
    for (const auto& [data, bytes] : closed_) __asan_unpoison_memory_region(data, bytes);
  }
  /// Makes any access to this contiguous View an error, until open() or the end of the guard.
  template <class V>
  void close(const V& view) {
    closed_.emplace_back(view.data(), bytes_of(view));
    __asan_poison_memory_region(view.data(), bytes_of(view));
  }
  template <class V>
  void open(const V& view) {
    __asan_unpoison_memory_region(view.data(), bytes_of(view));
  }
  static bool is_closed(const void* address) { return __asan_address_is_poisoned(address) != 0; }

 private:
  template <class V>
  static std::size_t bytes_of(const V& view) {
    return view.span() * sizeof(typename V::value_type);
  }
  std::vector<std::pair<const volatile void*, std::size_t>> closed_;
#else
  static constexpr bool is_active = false;
  template <class V>
  void close(const V&) {}
  template <class V>
  void open(const V&) {}
  static bool is_closed(const void*) { return false; }
#endif
};

}  // namespace tessera
