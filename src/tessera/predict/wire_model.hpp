// SPDX-License-Identifier: Apache-2.0
// The rounds of messages of a collective, and the bytes that a rank sends.
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/comm/operation.hpp>

namespace tessera {

/// Returns the bytes that each of n ranks sends divided by the payload bytes, in the algorithms
/// that send the fewest bytes: 2(n-1)/n for all_reduce, (n-1)/n for all_gather, reduce_scatter and
/// all_to_all, else 1 (Chan et al. 2007). NCCL's bus bandwidth is payload bytes per second times
/// this factor.
double wire_factor(Operation operation, Size n);

/// Returns the number of rounds of a ring algorithm: 2(n-1) for all_reduce, n-1 for all_gather,
/// reduce_scatter and all_to_all. Broadcast and barrier take ceil(log2 n) rounds, a message
/// takes 1.
double rounds(Operation operation, Size n);

/// Returns the least number of rounds in which a rank sends no more than wire_factor() times the
/// payload. Recursive doubling and halving needs ceil(log2 n) rounds where a ring needs n-1
/// (Thakur, Rabenseifner, Gropp 2005).
double fewest_rounds(Operation operation, Size n);

}  // namespace tessera
