// SPDX-License-Identifier: Apache-2.0
// What a collective costs in a model: rounds of messages, and bytes that a rank puts on the wire.
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/comm/operation.hpp>

namespace tessera {

/// Bytes that each of n ranks sends, over payload bytes, in the algorithm that sends fewest:
/// 2(n-1)/n for all_reduce, (n-1)/n for all_gather, reduce_scatter and all_to_all, else 1. The bus
/// bandwidth is the payload's bandwidth times this.
double wire_factor(Operation operation, Size n);

/// Messages one after the other in a ring: 2(n-1) for all_reduce, n-1 for all_gather,
/// reduce_scatter and all_to_all; ceil(log2 n) for a broadcast and a barrier, 1 for a message.
double rounds(Operation operation, Size n);

/// The fewest rounds in which they send no more than that: halving and doubling the distance makes
/// ceil(log2 n) of n-1 (Thakur, Rabenseifner, Gropp 2005).
double fewest_rounds(Operation operation, Size n);

}  // namespace tessera
