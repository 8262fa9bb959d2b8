// SPDX-License-Identifier: Apache-2.0
// Text between ranks. For set-up, errors and reports: nothing here is fast.
#pragma once

#include <string>
#include <vector>

#include <mpi.h>

#include <tessera/base/site.hpp>

namespace tessera {

/// Collective over `comm`: every rank's text, by rank, on every rank. Throws Error (communication)
/// on all of them if they are longer than 2 GiB together.
std::vector<std::string> gather_texts(MPI_Comm comm, const std::string& mine,
                                      const Site& site = Site::current());

/// The same on rank 0 alone, and nothing on the others: what no other rank needs must not take the
/// memory of all texts on each of them.
std::vector<std::string> gather_texts_on_first(MPI_Comm comm, const std::string& mine,
                                               const Site& site = Site::current());

/// Collective over `comm`: rank 0's text, of less than 2 GiB, on every rank.
std::string broadcast_text(MPI_Comm comm, std::string mine, const Site& site = Site::current());

}  // namespace tessera
