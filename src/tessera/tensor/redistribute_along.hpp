// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/view.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/tensor/placement.hpp>
#include <tessera/tensor/transition.hpp>

namespace tessera {

/// Redistributes a tensor along one axis in the caller's memory; allocates nothing. `group`: the
/// block that the ranks hold together. `from`: this rank's part of it, or its term of a Partial
/// one. `to`: the result; may alias `from` for an all-reduce. `packed`: packed_elements() of
/// scratch memory. A reduce-scatter overwrites `from`. Collective over `ranks`. Defined for float,
/// double, int32, int64, BFloat16 and Float16.
template <class T>
void redistribute_along(const Communicator& ranks, Placement before, Placement after,
                        const Shape& group, const Vector<T>& from, const Vector<T>& to,
                        const Vector<T>& packed);

}  // namespace tessera
