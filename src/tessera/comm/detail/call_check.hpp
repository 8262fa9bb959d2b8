// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <mpi.h>

#include <tessera/comm/call.hpp>

namespace tessera {

/// Compares the collective calls of all ranks before they start. Collective over `control`. Every
/// rank throws the same Error (communication), which names call sites and ranks, if the calls
/// differ in operation, count, type, reduction, root, shares or call site, or if a rank has a
/// `problem`. Ranks in different operations thus get an error and do not hang.
void agree_on_call(MPI_Comm control, const Call& call, const std::optional<std::string>& problem,
                   std::string_view axis);

}  // namespace tessera
