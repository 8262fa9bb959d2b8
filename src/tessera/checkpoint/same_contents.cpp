// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/checkpoint/checksums.hpp>
#include <tessera/checkpoint/same_contents.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/io/durable_file.hpp>

namespace tessera {
namespace {

constexpr Size most_runs = 16, longest_run = 1 << 16;

std::uint64_t hash_of_file(const std::string& path) {
  const auto size = static_cast<Size>(std::filesystem::file_size(path));
  const Size runs = std::clamp<Size>((size + longest_run - 1) / longest_run, 1, most_runs);
  const OpenFile file(path, O_RDONLY | O_NONBLOCK);
  auto hash = static_cast<std::uint64_t>(size);
  for (Size number = 0; number < runs; ++number) {
    const Range run = balanced_split(size, runs, number);
    std::vector<char> bytes(std::min(run.count, longest_run));
    file.read(run.begin, bytes.data(), std::ssize(bytes));
    hash += hash_of_run(bytes.data(), std::ssize(bytes), run.begin);
  }
  return hash;
}

}  // namespace

void check_same_contents(const std::string& path, const Communicator& ranks) {
  const std::uint64_t mine = collectively(ranks, [&] { return hash_of_file(path); });
  const std::uint64_t first = broadcast_json(ranks, mine);
  collectively(ranks, [&] {
    if (mine != first)
      throw Error(ExitCode::usage, "{}: has other contents on rank {} than on rank 0", path,
                  ranks.rank());
  });
}

}  // namespace tessera
