// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include <tessera/comm/backend.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/mesh/topology.hpp>
#include <tessera/predict/machine.hpp>

namespace tessera::bench {

/// FLOP/s of a rank's matrix products, by the type of their operands, as in Machine.
using ProductRates = std::map<std::string, double>;

/// Measures the numbers of a machine file on these ranks, all of them busy: a sweep through memory,
/// the smallest kernel on all threads, products of few rows, an all-reduce beside a product, and
/// short all-reduces for latencies. Within a node the rate is that of long all-reduces. The link of
/// a node has the rate of long messages in both directions, or with NCCL, which carries none, of
/// all-reduces. A single rank has no network. If nodes have different numbers of ranks, one level
/// connects all ranks. `rates` are those of products of `gemm_size` rows; float32 is added if it is
/// missing. Collective over `ranks`.
Machine measure_machine(const Communicator& ranks, const std::vector<Size>& node_of_rank,
                        const BackendFacts& facts, Size gemm_size, ProductRates rates);

/// Returns the rate of a transfer that takes `seconds`, of which `overhead` do not depend on its
/// bytes. The two times are measured apart, and on a busy machine the overhead may come out longer;
/// it counts for at most half of the seconds, so that the rate is positive.
double rate_beyond(double bytes, double seconds, double overhead);

}  // namespace tessera::bench
