// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

#include <tessera/base/huge_pages.hpp>

namespace tessera {

void advise_huge_pages([[maybe_unused]] void* data, [[maybe_unused]] Size bytes) {
#ifdef MADV_HUGEPAGE
  // Less memory holds one whole huge page or none.
  constexpr Size worthwhile = 4 << 20;
  if (bytes < worthwhile) return;
  // Whole pages only, because the first and the last may hold other memory, too.
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t begin = (address + page - 1) / page * page;
  const std::uintptr_t end = (address + static_cast<std::uintptr_t>(bytes)) / page * page;
  // The call fails on a kernel without huge pages, which is fine.
  static_cast<void>(madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE));
#endif
}

}  // namespace tessera
