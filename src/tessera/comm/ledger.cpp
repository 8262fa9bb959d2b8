// SPDX-License-Identifier: Apache-2.0
#include <ostream>

#include <tessera/comm/ledger.hpp>

namespace tessera {

std::ostream& operator<<(std::ostream& out, const LedgerRow& row) {
  return out << row.axis << ' ' << name_of(row.operation) << ": " << row.calls << " calls, "
             << row.payload_bytes << " bytes";
}

void to_json(nlohmann::json& json, const LedgerRow& row) {
  json = {{"axis", row.axis},
          {"operation", name_of(row.operation)},
          {"calls", row.calls},
          {"payload_bytes", row.payload_bytes}};
}

std::vector<LedgerRow> Ledger::rows() const {
  std::vector<LedgerRow> rows;
  for (const auto& [axis, counts] : axes_) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (counts[i].calls == 0) continue;
      rows.push_back({axis, static_cast<Operation>(i), counts[i].calls, counts[i].payload_bytes});
    }
  }
  return rows;
}

void Ledger::reset() {
  for (auto& [axis, counts] : axes_) counts = {};
}

}  // namespace tessera
