// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>

#include <Kokkos_Core.hpp>

#include <tessera/comm/share_json.hpp>

namespace tessera {
namespace {

/// A character each: communicators move no bytes.
using HostText = Kokkos::View<std::int32_t*, Kokkos::HostSpace>;

HostText to_view(const std::string& text) {
  const HostText view("tessera::text", text.size());
  for (std::size_t i = 0; i < text.size(); ++i) view(i) = static_cast<unsigned char>(text[i]);
  return view;
}

std::string to_text(const HostText& view, Size begin, Size count) {
  std::string text;
  for (Size i = begin; i < begin + count; ++i) text.push_back(static_cast<char>(view(i)));
  return text;
}

/// What is no UTF-8 is replaced: one rank must not fail where the others go on.
std::string dump(const nlohmann::json& document) {
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::vector<nlohmann::json> gather_json(const Communicator& world, const nlohmann::json& mine) {
  const HostText text = to_view(dump(mine));
  const HostText length("tessera::text_length", 1), lengths("tessera::text_lengths", world.size());
  length(0) = static_cast<std::int32_t>(text.extent(0));
  world.all_gather(length, lengths);

  std::vector<Size> counts;
  Size total = 0;
  for (int rank = 0; rank < world.size(); ++rank) {
    counts.push_back(lengths(rank));
    total += lengths(rank);
  }
  const HostText all("tessera::texts", total);
  world.all_gather(text, all, counts);

  std::vector<nlohmann::json> documents;
  Size begin = 0;
  for (const Size count : counts) {
    documents.push_back(nlohmann::json::parse(to_text(all, begin, count)));
    begin += count;
  }
  return documents;
}

nlohmann::json broadcast_json(const Communicator& world, const nlohmann::json& mine) {
  const HostText own = to_view(dump(mine));
  const HostText length("tessera::text_length", 1);
  length(0) = static_cast<std::int32_t>(own.extent(0));
  world.broadcast(length, 0);
  const HostText text = world.rank() == 0 ? own : HostText("tessera::text", length(0));
  world.broadcast(text, 0);
  return nlohmann::json::parse(to_text(text, 0, length(0)));
}

}  // namespace tessera
