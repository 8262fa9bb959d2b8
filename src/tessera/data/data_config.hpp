// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <tessera/base/names.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// Kinds of data. A sample is a function of the seed or of a file, and of its index.
enum class DataKind : std::uint8_t {
  sum_of_squares,  ///< x standard normal, y = sum of x squared along the row; one output
  random,          ///< x and y standard normal, or uniform over the model's classes
  copy_task,       ///< sequences of classes whose second half repeats the first
  bytes,           ///< sequences of the bytes of a file
  blobs,           ///< images of smooth bumps, x and y
  idx,             ///< images of a file in the IDX format of MNIST, x and y
  poisson_points,  ///< points of the unit square and of its boundary, for Poisson's equation
  darcy,           ///< flow through a porous medium, on a grid
  npy,             ///< NumPy arrays: a file for x, and one for y
  hdf5,            ///< two arrays of an HDF5 file
};
template <>
inline constexpr std::array<std::string_view, 10> names_of<DataKind>{
    "sum_of_squares", "random", "copy_task", "bytes", "blobs", "idx",
    "poisson_points", "darcy",  "npy",       "hdf5"};

struct DataConfig {
  DataKind kind = DataKind::sum_of_squares;
  Size samples = 256;
  std::uint64_t seed = 0;
  std::string file{};            ///< file of bytes, idx and hdf5
  std::string x{}, y{};          ///< arrays: files for npy, names in `file` for hdf5
  bool allow_nonfinite = false;  ///< accept NaN and infinity in arrays
  bool shuffle = false;          ///< a new order of the samples in each epoch
  Size validation_samples = 0;   ///< samples after the others, which no step sees
};

}  // namespace tessera
