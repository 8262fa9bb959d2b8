// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/process/gpu.hpp>

namespace tessera {

int device_of_rank(int local_rank, int visible_devices, const std::optional<AskedNumber>& asked) {
  if (visible_devices < 1)
    throw Error(
        ExitCode::usage,
        "this process sees no GPU, but this Tessera was built for GPUs: check the job's GPU "
        "request and CUDA_VISIBLE_DEVICES (without a GPU only `tessera plan`, --help and "
        "--version work)");
  if (!asked) return local_rank % visible_devices;
  if (asked->number >= visible_devices)
    throw ConfigError(asked->name, std::to_string(asked->number),
                      "this process sees {}, counted from 0", counted(visible_devices, "GPU"));
  return asked->number;
}

std::optional<std::string> shared_device_error(std::span<const std::string> devices) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (devices[i] != devices[j]) continue;
      return fmt::format(
          "ranks {} and {} of a node with {} ranks share one GPU: start one rank per GPU, or set "
          "TESSERA_ALLOW_SHARED_GPU=1 to allow this",
          j, i, devices.size());
    }
  }
  return std::nullopt;
}

Size ranks_per_gpu(std::span<const std::string> devices) {
  std::map<std::string, Size> ranks;
  Size most = 0;
  for (const std::string& device : devices) most = std::max(most, ++ranks[device]);
  return most;
}

}  // namespace tessera
