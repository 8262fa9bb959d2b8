// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <tessera/base/view.hpp>
#include <tessera/tensor/piece.hpp>

namespace tessera {

/// Elements that a digest leaves out: none, or zeros, of terms that are on other ranks.
enum class LeftOut : std::uint8_t { none, zeros };

/// Sets sums(number) to the digest of consecutive elements of a tensor: the sum modulo 2^64 of
/// element_hash() over their bits and their places in the whole tensor. So the digests of the parts
/// of a tensor add up to that of the whole, however ranks split it. The values begin at element
/// `first` of the piece that `place` maps. Does not wait for the device. T: float, double,
/// BFloat16.
template <class T>
void digest(const Vector<const T>& values, const GlobalIndex& place, Size first,
            const Vector<std::int64_t>& sums, Size number, LeftOut left_out = LeftOut::none);

}  // namespace tessera
