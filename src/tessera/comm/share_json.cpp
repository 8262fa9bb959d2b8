// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <tessera/base/share_text.hpp>
#include <tessera/comm/detail/control_call.hpp>
#include <tessera/comm/share_json.hpp>

namespace tessera {
namespace {

/// What is no UTF-8 is replaced: one rank must not fail where the others go on.
std::string dump(const nlohmann::json& document) {
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::vector<nlohmann::json> gather_json(const Communicator& ranks, const nlohmann::json& mine,
                                        Site site) {
  std::vector<std::string> texts{dump(mine)};
  if (ranks.size() > 1) {
    const detail::ControlCall call(ranks, site);
    texts = gather_texts(call.ranks(), texts.front(), site);
  }
  std::vector<nlohmann::json> documents;
  for (const std::string& text : texts) documents.push_back(nlohmann::json::parse(text));
  return documents;
}

nlohmann::json broadcast_json(const Communicator& ranks, const nlohmann::json& mine, Site site) {
  std::string text = dump(mine);
  if (ranks.size() > 1) {
    const detail::ControlCall call(ranks, site);
    text = broadcast_text(call.ranks(), 0, text, site);
  }
  return nlohmann::json::parse(text);
}

}  // namespace tessera
