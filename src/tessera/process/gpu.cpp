// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/process/gpu.hpp>

namespace tessera {

void check_gpus(int visible, const std::optional<AskedNumber>& asked) {
  if (visible < 1)
    throw Error(
        ExitCode::usage,
        "this process sees no GPU, but this Tessera was built for GPUs: check the job's GPU "
        "request and CUDA_VISIBLE_DEVICES (without a GPU only `tessera plan`, --help and "
        "--version work)");
  if (asked && asked->number >= visible)
    throw ConfigError(asked->name, std::to_string(asked->number),
                      "this process sees {}, counted from 0", counted(visible, "GPU"));
}

std::optional<std::string> shared_gpu_error(std::span<const std::string> identities) {
  std::map<std::string, std::size_t> first_rank;
  for (std::size_t i = 0; i < identities.size(); ++i) {
    const auto [first, is_new] = first_rank.try_emplace(identities[i], i);
    if (is_new) continue;
    return fmt::format(
        "ranks {} and {} of a node with {} ranks share one GPU: start one rank per GPU, or set "
        "TESSERA_ALLOW_SHARED_GPU=1 to allow this",
        first->second, i, identities.size());
  }
  return std::nullopt;
}

Size ranks_per_gpu(std::span<const std::string> gpus) {
  std::map<std::string, Size> ranks;
  Size most = 0;
  for (const std::string& gpu : gpus) most = std::max(most, ++ranks[gpu]);
  return most;
}

}  // namespace tessera
