// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/view.hpp>
#include <tessera/comm/communicator.hpp>

namespace tessera {

/// Redistributes matrices over the ranks along one axis, in memory of the caller: nothing is
/// allocated in device memory. `part` is the rank's balanced part of `whole` along dimension `dim`;
/// columns travel packed, part after part, through `packed` of the size of `whole`; rows are
/// contiguous and need none.
template <class T>
class Redistribution {
 public:
  explicit Redistribution(const Communicator& ranks) : ranks_(ranks) {}

  /// Shard(dim) -> Replicate
  void all_gather(const Matrix<T>& part, int dim, const Matrix<T>& packed,
                  const Matrix<T>& whole) const;
  /// Partial -> Shard(dim); the terms in `whole` are lost.
  void reduce_scatter(const Matrix<T>& whole, int dim, const Matrix<T>& packed,
                      const Matrix<T>& part) const;
  /// Partial -> Replicate
  void all_reduce(const Matrix<T>& whole) const;
  /// Replicate -> Shard(dim), local
  void slice(const Matrix<const T>& whole, int dim, const Matrix<T>& part) const;

 private:
  Communicator ranks_;
};

}  // namespace tessera
