// SPDX-License-Identifier: Apache-2.0
// These functions are apart from the rules, so that a test can pretend that there are GPUs.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <tessera/comm/backend.hpp>
#include <tessera/comm/detail/transport.hpp>
#include <tessera/process/gpu.hpp>
#include <tessera/process/host_info.hpp>
#include <tessera/process/mpi_error.hpp>
#include <tessera/process/share_text.hpp>
#include <tessera/process/wait_limit.hpp>

namespace tessera {

BackendFacts backend_facts() {
  BackendFacts facts;
  facts.has_nccl = nccl_version().has_value();
#ifdef KOKKOS_ENABLE_CUDA
  facts.has_cuda = true;
#endif
  if (!facts.has_cuda || !mpi_is_running()) return facts;
  const WaitLimit limit("the search for GPUs", timeout_seconds());
  // NCCL takes two slices of one GPU for the same GPU.
  const std::vector<std::string> gpus =
      gather_texts_on_first(MPI_COMM_WORLD, host_name() + " " + own_gpu().value().board);
  std::map<std::string, Size> ranks;
  Size most = 0;
  for (const std::string& gpu : gpus) most = std::max(most, ++ranks[gpu]);
  facts.ranks_per_gpu = std::stoll(broadcast_text(MPI_COMM_WORLD, std::to_string(most)));
  return facts;
}

bool is_device_memory(const Buffer& buffer) { return !buffer.host_accessible; }

void* kernel_stream() {
#ifdef KOKKOS_ENABLE_CUDA
  return Kokkos::Cuda().cuda_stream();
#else
  return nullptr;
#endif
}

}  // namespace tessera
