// SPDX-License-Identifier: Apache-2.0
// Exchanges text between ranks, for set-up, errors and reports. Not made for speed.
#pragma once

#include <string>
#include <vector>

#include <mpi.h>

#include <tessera/base/site.hpp>

namespace tessera {

/// Returns the texts of all ranks, by rank, on every rank. Collective over `comm`. Throws Error
/// (communication) on all ranks if the texts together are longer than 2 GiB.
std::vector<std::string> gather_texts(MPI_Comm comm, const std::string& mine,
                                      const Site& site = Site::current());

/// Returns the texts on rank 0, and nothing on the other ranks, which thus need no memory for them.
std::vector<std::string> gather_texts_on_first(MPI_Comm comm, const std::string& mine,
                                               const Site& site = Site::current());

/// Returns the text of rank 0, shorter than 2 GiB, on every rank. Collective over `comm`.
std::string broadcast_text(MPI_Comm comm, std::string mine, const Site& site = Site::current());

}  // namespace tessera
