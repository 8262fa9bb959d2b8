// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/comm/communicator.hpp>
#include <tessera/mesh/topology.hpp>
#include <tessera/predict/machine.hpp>

namespace tessera::bench {

/// The numbers of a machine file, of these ranks, all of them busy at a time: products of
/// `gemm_size` rows and of few, a sweep through memory, the smallest kernel on all threads, an
/// all-reduce beside a product, and short all-reduces, for latencies. Inside a node ranks have the
/// rate that long all-reduces reach; the link of a node has that of long messages, both ways at a
/// time, or with NCCL, which carries none, of all-reduces, too. Throws Error (usage) on all ranks
/// for a single rank, which has no links, and for nodes with different numbers of ranks.
/// Collective.
Machine measure_machine(const Communicator& ranks, const std::vector<Size>& node_of_rank,
                        Size gemm_size);

}  // namespace tessera::bench
