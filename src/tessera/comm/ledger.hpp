// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/base/types.hpp>
#include <tessera/comm/operation.hpp>

namespace tessera {

/// The traffic of one rank over one axis with one operation.
struct LedgerRow {
  std::string axis;
  Operation operation = Operation::barrier;
  Size calls = 0;
  Size payload_bytes = 0;  ///< bytes of the full logical buffers (ALGORITHMS §1); messages: as sent
  friend bool operator==(const LedgerRow&, const LedgerRow&) = default;
};

std::ostream& operator<<(std::ostream& out, const LedgerRow& row);
/// {"axis", "operation", "calls", "payload_bytes"}
void to_json(nlohmann::json& json, const LedgerRow& row);

/// Counts calls and payload bytes by (axis, operation), on one rank. A call counts once however
/// the transport cuts it. All communicators split from one world write to one ledger.
class Ledger {
 public:
  struct Count {
    Size calls = 0;
    Size payload_bytes = 0;
    void add(Size bytes) {
      ++calls;
      payload_bytes += bytes;
    }
  };
  using Counts = std::array<Count, num_operations>;

  /// The counters of one axis; their address stays the same.
  Counts& axis(const std::string& name) { return axes_[name]; }

  /// What has been counted, by axis name, then in the order of Operation. No row without a call.
  std::vector<LedgerRow> rows() const;
  void reset();

 private:
  std::map<std::string, Counts> axes_;
};

}  // namespace tessera
