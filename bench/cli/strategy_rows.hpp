// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/comm/communicator.hpp>
#include <tessera/config/config.hpp>

#include "cli/smoke_table.hpp"
#include "measure/measure.hpp"

namespace tessera::bench {

/// Appends, for each strategy on all ranks, the time of a step of `config` against that of `data`,
/// all of them measured in turn. Collective; nothing for one rank.
void strategy_rows(const Config& config, const Communicator& ranks, const Repeats& repeats,
                   std::vector<Row>& rows);

}  // namespace tessera::bench
