// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <tessera/base/share_text.hpp>
#include <tessera/comm/detail/control_call.hpp>
#include <tessera/comm/share_json.hpp>

namespace tessera {
namespace {

/// What is no UTF-8 is replaced: one rank must not fail where the others go on.
std::vector<std::string> gather(const Communicator& ranks, const nlohmann::json& mine,
                                const Site& site) {
  std::string text = mine.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (ranks.size() == 1) return {std::move(text)};
  const detail::ControlCall call(ranks, site);
  return gather_texts(call.ranks(), text, site);
}

}  // namespace

std::vector<nlohmann::json> gather_json(const Communicator& ranks, const nlohmann::json& mine,
                                        Site site) {
  std::vector<nlohmann::json> documents;
  for (const std::string& text : gather(ranks, mine, site)) {
    documents.push_back(nlohmann::json::parse(text));
  }
  return documents;
}

nlohmann::json broadcast_json(const Communicator& ranks, const nlohmann::json& mine, Site site) {
  return nlohmann::json::parse(gather(ranks, ranks.rank() == 0 ? mine : nullptr, site).front());
}

}  // namespace tessera
