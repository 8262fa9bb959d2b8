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

/// The traffic of one rank, over one axis, by one operation.
struct LedgerRow {
  std::string axis;
  Operation operation = Operation::barrier;
  Size calls = 0;
  Size payload_bytes = 0;  ///< bytes of full logical buffers (README.md); of messages as sent
  friend bool operator==(const LedgerRow&, const LedgerRow&) = default;
};

std::ostream& operator<<(std::ostream& out, const LedgerRow& row);
/// {"axis", "operation", "calls", "payload_bytes"}
void to_json(nlohmann::json& json, const LedgerRow& row);

/// Counts the calls and payload bytes of one rank by (axis, operation). A call counts once, even if
/// the transport splits it. All communicators split from one world share a ledger.
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

  /// Returns the counters of an axis. Their address does not change.
  Counts& axis(const std::string& name) { return axes_[name]; }

  /// Returns the counts, ordered by axis name and then by Operation, without empty rows.
  std::vector<LedgerRow> rows() const;
  void reset();

 private:
  std::map<std::string, Counts> axes_;
};

}  // namespace tessera
