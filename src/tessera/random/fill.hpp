// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>
#include <tessera/random/initializer.hpp>
#include <tessera/random/threefry.hpp>

namespace tessera {

/// The position of a local matrix in its global tensor. Element (i, j) has the flat index
/// (row_offset + i) * global_cols + col_offset + j, so its number does not depend on the mesh.
struct GlobalBlock {
  Size row_offset = 0;
  Size col_offset = 0;
  Size global_cols = -1;  ///< -1: the local number of columns
};

/// Contiguous elements of a local block with `block_cols` columns, in row-major order, from element
/// `first` on. A flat shard of a unit consists of such runs.
struct BlockRun {
  GlobalBlock block;
  Size block_cols = 1;
  Size first = 0;
};

/// Fills with standard normal numbers. They are drawn in float32 for every T.
template <class T>
void fill_normal(const Matrix<T>& local, Key key, GlobalBlock block = {});

/// Fills a block of a (fan_in, fan_out) kernel like jax.nn.initializers.variance_scaling.
template <class T>
void initialize(const Matrix<T>& local, Initializer initializer, Key key, GlobalBlock block,
                Size fan_in, Size fan_out);
template <class T>
void initialize_run(const Vector<T>& local, Initializer initializer, Key key, const BlockRun& run,
                    Size fan_in, Size fan_out);

/// Fills with uniform numbers in [0, limit).
template <class T>
void fill_uniform_run(const Vector<T>& local, float limit, Key key, const BlockRun& run);

}  // namespace tessera
