// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <tessera/comm/detail/communicator_state.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/process/share_text.hpp>

namespace tessera {
namespace {

/// Replaces bytes that are not UTF-8, so that no rank fails alone.
std::string json_text(const nlohmann::json& document) {
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Calls share(communicator, text of this rank).
template <class Share>
auto shared(const Communicator& ranks, const nlohmann::json& mine, const Site& site,
            const Share& share) {
  if (ranks.size() == 1) return share(MPI_COMM_SELF, json_text(mine));
  const detail::ControlCall call(ranks, site);
  return share(call.ranks(), json_text(mine));
}

}  // namespace

std::vector<nlohmann::json> gather_json(const Communicator& ranks, const nlohmann::json& mine,
                                        Site site) {
  return shared(ranks, mine, site, [&](MPI_Comm comm, const std::string& text) {
    std::vector<nlohmann::json> documents;
    for (const std::string& one : gather_texts_on_first(comm, text, site))
      documents.push_back(nlohmann::json::parse(one));
    return documents;
  });
}

nlohmann::json broadcast_json(const Communicator& ranks, const nlohmann::json& mine, Site site) {
  const nlohmann::json none;
  return shared(ranks, ranks.is_first() ? mine : none, site,
                [&](MPI_Comm comm, const std::string& text) {
                  return nlohmann::json::parse(broadcast_text(comm, text, site));
                });
}

nlohmann::json conclude_json(
    const Communicator& ranks, const nlohmann::json& mine,
    const std::function<nlohmann::json(const std::vector<nlohmann::json>&)>& conclude, Site site) {
  const std::vector<nlohmann::json> all = gather_json(ranks, mine, site);
  return broadcast_json(ranks, all.empty() ? nlohmann::json() : conclude(all), site);
}

}  // namespace tessera
