// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <tessera/base/placement.hpp>
#include <tessera/base/split.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// Returns true if this program was built with HDF5. Without it, every Hdf5Array throws Error
/// (usage).
bool has_hdf5();

/// An array of integers, real numbers or booleans in an HDF5 file of any program, open for reading
/// by this process. Links and elements in other files are rejected. Every failure throws Error
/// (usage) with the file, the array and HDF5's reason. The file is not locked, because some file
/// systems have no locks; HDF5_USE_FILE_LOCKING=TRUE locks it.
class Hdf5Array {
 public:
  Hdf5Array(const std::string& path, const std::string& name);

  const Shape& shape() const { return shape_; }
  /// Reads these indices of the first dimension, and converts the elements to `type`: float32 or
  /// float64.
  void read(Range rows, DType type, void* values) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
  Shape shape_;
};

}  // namespace tessera
