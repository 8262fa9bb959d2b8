// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <Kokkos_Core.hpp>

#include <tessera/train/gather_json.hpp>

namespace tessera {
namespace {

using HostText = Kokkos::View<std::int32_t*, Kokkos::HostSpace>;

std::vector<std::string> gather_text(const Communicator& world, const std::string& mine) {
  HostText lengths("tessera::text_lengths", world.size());
  HostText length("tessera::text_length", 1);
  length(0) = static_cast<std::int32_t>(mine.size());
  world.all_gather(length, lengths);

  std::vector<Size> counts;
  Size total = 0;
  for (int rank = 0; rank < world.size(); ++rank) {
    counts.push_back(lengths(rank));
    total += lengths(rank);
  }
  HostText text("tessera::text", mine.size());
  for (std::size_t i = 0; i < mine.size(); ++i) text(i) = static_cast<unsigned char>(mine[i]);
  HostText all("tessera::texts", total);
  world.all_gather(text, all, counts);

  std::vector<std::string> texts;
  Size next = 0;
  for (const Size count : counts) {
    std::string& of_rank = texts.emplace_back();
    for (Size i = 0; i < count; ++i) of_rank.push_back(static_cast<char>(all(next++)));
  }
  return texts;
}

}  // namespace

std::vector<nlohmann::json> gather_json(const Communicator& world, const nlohmann::json& mine) {
  std::vector<nlohmann::json> documents;
  for (const std::string& text : gather_text(world, mine.dump()))
    documents.push_back(nlohmann::json::parse(text));
  return documents;
}

}  // namespace tessera
