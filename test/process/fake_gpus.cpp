// SPDX-License-Identifier: Apache-2.0
// Replaces process/gpu_facts.cpp. The node has the GPUs of FAKE_GPUS, names with commas between
// them. Ranks pick them in turn, as Kokkos does. A GPU named "broken" does not respond.
#include <cstdlib>
#include <string>
#include <vector>

#include <mpi.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/process/gpu.hpp>

namespace tessera {
namespace {

std::vector<std::string> fake_gpus() {
  const char* text = std::getenv("FAKE_GPUS");
  if (text == nullptr || *text == '\0') return {};
  return split_text(text, ',');
}

}  // namespace

std::optional<int> visible_gpus() { return static_cast<int>(fake_gpus().size()); }

std::optional<Gpu> own_gpu() {
  const std::vector<std::string> gpus = fake_gpus();
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  // The rank among those of its node, which Kokkos reads from the launcher too.
  if (const char* const local = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK")) rank = std::atoi(local);
  const int index = rank % static_cast<int>(gpus.size());
  const std::string& name = gpus[static_cast<std::size_t>(index)];
  if (name == "broken") throw Error(ExitCode::usage, "GPU {} is not responding", index);
  return Gpu{index, name, name};
}

void use_own_gpu() {}
bool pin(void*, Size) { return false; }
void unpin(void*) {}

}  // namespace tessera
