// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>
#include <tessera/random/initializer.hpp>
#include <tessera/random/threefry.hpp>

namespace tessera {

/// Contiguous elements of a rank's block of a tensor, in row-major order, as rows and columns of
/// the whole tensor. A flat shard of a unit consists of such runs. Element i of the block has row
/// `row` + i / block_cols and column `col` + i % block_cols; its number in the whole tensor, from
/// which it is drawn, does not depend on the mesh.
struct BlockRun {
  Size row = 0, col = 0;  ///< of the block's first element
  Size cols = 1;          ///< columns of the whole tensor
  Size block_cols = 1;    ///< columns of the block
  Size first = 0;         ///< number of the run's first element in the block

  /// Returns the number in the whole tensor of element i of the run.
  KOKKOS_FUNCTION Size operator()(Size i) const {
    const Size at = first + i;
    return (row + at / block_cols) * cols + col + at % block_cols;
  }
};

/// Fills a matrix with standard normal numbers; its first row is row `first_row` of the whole. They
/// are drawn in float32 for every T.
template <class T>
void fill_normal(const Matrix<T>& local, Key key, Size first_row = 0);

/// Fills a run of a (fan_in, fan_out) kernel like jax.nn.initializers.variance_scaling.
template <class T>
void initialize(const Vector<T>& local, Initializer initializer, Key key, const BlockRun& run,
                Size fan_in, Size fan_out);

/// Fills with uniform numbers in [0, limit).
template <class T>
void fill_uniform(const Vector<T>& local, float limit, Key key, const BlockRun& run);

}  // namespace tessera
