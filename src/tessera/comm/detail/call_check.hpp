// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <mpi.h>

#include <tessera/comm/call.hpp>
#include <tessera/comm/detail/transport.hpp>

namespace tessera {

/// Collective over `control`: all ranks say which collective call they are about to make, and what
/// they found wrong with it themselves. If the calls differ in operation, count, type, reduction,
/// root, shares or call site, or one rank has a problem, every rank throws the same Error
/// (communication), which names the call sites and the ranks. As every call starts like that, ranks
/// in different operations meet here and do not hang.
void agree_on_call(MPI_Comm control, const Call& call, const std::optional<std::string>& problem,
                   std::string_view axis);

/// Passes calls on to `next`, and lets every message be preceded by one that describes it. The
/// receiver throws Error (communication) with both call sites when count or type differ.
std::unique_ptr<Transport> make_message_check(std::unique_ptr<Transport> next, MPI_Comm control,
                                              std::string axis);

}  // namespace tessera
