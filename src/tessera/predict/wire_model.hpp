// SPDX-License-Identifier: Apache-2.0
// The model of a collective's cost: rounds of messages, and bytes that a rank sends.
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/comm/operation.hpp>

namespace tessera {

/// Returns the bytes that each of n ranks sends, divided by payload bytes, in the algorithm that
/// sends fewest: 2(n-1)/n for all_reduce, (n-1)/n for all_gather, reduce_scatter and all_to_all,
/// else 1. The bus bandwidth is the payload's bandwidth times this factor.
double wire_factor(Operation operation, Size n);

/// Returns the rounds of a ring: 2(n-1) for all_reduce, n-1 for all_gather, reduce_scatter and
/// all_to_all, ceil(log2 n) for broadcast and barrier, 1 for a message.
double rounds(Operation operation, Size n);

/// Returns the fewest rounds that send no more bytes than that: recursive doubling and halving
/// replaces n-1 by ceil(log2 n) (Thakur, Rabenseifner, Gropp 2005).
double fewest_rounds(Operation operation, Size n);

}  // namespace tessera
