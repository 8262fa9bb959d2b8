// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>
#include <tessera/random/initializer.hpp>
#include <tessera/random/threefry.hpp>

namespace tessera {

/// Where a local matrix lies in its global tensor. Element (i, j) has the flat index
/// (row_offset + i) * global_cols + col_offset + j, so a block holds the same numbers on any mesh.
struct GlobalBlock {
  Size row_offset = 0;
  Size col_offset = 0;
  Size global_cols = -1;  ///< -1: the local number of columns
};

/// A run of a local block in row-major order: element `first` of a block of `block_cols` columns is
/// the run's element 0. This is what a rank holds when a flat unit is cut anywhere.
struct BlockRun {
  GlobalBlock block;
  Size block_cols = 1;
  Size first = 0;
};

/// Standard normal. Draws are made in float32 and widened for double: both hold the same numbers.
/// T: float, double.
template <class T>
void fill_normal(const Matrix<T>& local, Key key, GlobalBlock block = {});

/// A block of a (fan_in, fan_out) kernel, as jax.nn.initializers.variance_scaling draws it.
template <class T>
void initialize(const Matrix<T>& local, Initializer initializer, Key key, GlobalBlock block,
                Size fan_in, Size fan_out);
template <class T>
void initialize_run(const Vector<T>& local, Initializer initializer, Key key, const BlockRun& run,
                    Size fan_in, Size fan_out);

/// Uniform on [0, limit).
template <class T>
void fill_uniform_run(const Vector<T>& local, float limit, Key key, const BlockRun& run);

}  // namespace tessera
