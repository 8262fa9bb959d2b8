// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/comm/communicator.hpp>
#include <tessera/process/outcome.hpp>

namespace tessera {

/// If a rank has failed, every rank throws the Error of the lowest failed rank. Collective.
/// collectively() of process/outcome.hpp calls it.
void raise_first_failure(const Communicator& comm, const Outcome& mine, Site site);

}  // namespace tessera
