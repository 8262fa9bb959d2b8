// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <tessera/comm/detail/communicator_state.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/process/share_text.hpp>

namespace tessera {
namespace {

/// Returns a document as CBOR (RFC 8949), which keeps all bytes of its texts, also those of paths
/// that are not UTF-8.
std::string packed(const nlohmann::json& document) {
  std::string bytes;
  nlohmann::json::to_cbor(document, bytes);
  return bytes;
}

/// Calls share(communicator, packed document of this rank).
template <class Share>
auto shared(const Communicator& ranks, const nlohmann::json& mine, const Site& site,
            const Share& share) {
  if (ranks.size() == 1) return share(MPI_COMM_SELF, packed(mine));
  const detail::ControlCall call(ranks, site);
  return share(call.ranks(), packed(mine));
}

}  // namespace

std::vector<nlohmann::json> gather_json(const Communicator& ranks, const nlohmann::json& mine,
                                        Site site) {
  return shared(ranks, mine, site, [&](MPI_Comm comm, const std::string& text) {
    std::vector<nlohmann::json> documents;
    for (const std::string& one : gather_texts_on_first(comm, text, site))
      documents.push_back(nlohmann::json::from_cbor(one));
    return documents;
  });
}

nlohmann::json broadcast_json(const Communicator& ranks, const nlohmann::json& mine, Site site) {
  const nlohmann::json none;
  return shared(ranks, ranks.is_first() ? mine : none, site,
                [&](MPI_Comm comm, const std::string& text) {
                  return nlohmann::json::from_cbor(broadcast_text(comm, text, site));
                });
}

nlohmann::json conclude_json(
    const Communicator& ranks, const nlohmann::json& mine,
    const std::function<nlohmann::json(const std::vector<nlohmann::json>&)>& conclude, Site site) {
  const std::vector<nlohmann::json> all = gather_json(ranks, mine, site);
  return broadcast_json(ranks, all.empty() ? nlohmann::json() : conclude(all), site);
}

}  // namespace tessera
