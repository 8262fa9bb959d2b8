// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <tessera/base/huge_pages.hpp>
#include <tessera/comm/detail/host_blocks.hpp>
#include <tessera/process/gpu.hpp>
#include <tessera/process/mpi_error.hpp>

namespace tessera {

HostBlock::HostBlock(Size bytes, const Site& site) : bytes_(bytes) {
  void* memory = nullptr;
  check_mpi(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &memory), "MPI_Alloc_mem", site);
  memory_.reset(static_cast<char*>(memory));
  advise_huge_pages(memory, bytes);
  // Smaller blocks may share their pages with others.
  memory_.get_deleter().is_pinned = bytes >= Size{1} << 20 && pin(memory, bytes);
}

void HostBlock::Free::operator()(char* memory) const noexcept {
  if (!mpi_is_running()) return;
  if (is_pinned) unpin(memory);
  MPI_Free_mem(memory);
}

HostBlock HostBlockPool::take(Size bytes, const Site& site) {
  if (bytes == 0) return {};
  const auto found = std::find_if(free_.begin(), free_.end(),
                                  [&](const HostBlock& block) { return block.bytes() >= bytes; });
  if (found == free_.end()) {
    if (!free_.empty()) free_.pop_back();
    return HostBlock(bytes, site);
  }
  HostBlock block = std::move(*found);
  free_.erase(found);
  return block;
}

void HostBlockPool::give_back(HostBlock block) {
  if (block.bytes() == 0) return;
  const auto larger = std::find_if(free_.begin(), free_.end(),
                                   [&](const HostBlock& b) { return b.bytes() >= block.bytes(); });
  free_.insert(larger, std::move(block));
}

}  // namespace tessera
