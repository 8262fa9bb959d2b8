// SPDX-License-Identifier: Apache-2.0
// Stands in for process/gpu_facts.cpp: the node has the GPUs of FAKE_GPUS, names with commas
// between them, of which one named "broken" does not answer. With FAKE_GPU_BINDING the launcher has
// given each rank one of them.
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <mpi.h>

#include <tessera/base/error.hpp>
#include <tessera/process/gpu.hpp>

namespace tessera {
namespace {

std::vector<std::string> own_gpus() {
  std::vector<std::string> gpus;
  std::string name;
  const char* text = std::getenv("FAKE_GPUS");
  for (const char c : std::string(text == nullptr ? "" : text)) {
    if (c == ',') gpus.push_back(std::exchange(name, {}));
    if (c != ',') name += c;
  }
  if (!name.empty()) gpus.push_back(name);
  if (std::getenv("FAKE_GPU_BINDING") == nullptr) return gpus;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return {gpus.at(static_cast<std::size_t>(rank))};
}

}  // namespace

std::optional<int> visible_devices() { return static_cast<int>(own_gpus().size()); }

std::string device_identity(int device) {
  // Kokkos has none here, and says -1.
  if (device < 0) return "";
  const std::string name = own_gpus().at(static_cast<std::size_t>(device));
  if (name == "broken")
    throw Error(ExitCode::usage, "GPU " + std::to_string(device) + " is not responding");
  return name;
}

void use_own_gpu() {}

std::string device_name(int device) { return own_gpus().at(static_cast<std::size_t>(device)); }

}  // namespace tessera
