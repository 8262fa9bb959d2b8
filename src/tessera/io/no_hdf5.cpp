// SPDX-License-Identifier: Apache-2.0
// Replaces hdf5_array.cpp in builds without HDF5.
#include <tessera/base/error.hpp>
#include <tessera/io/hdf5_array.hpp>

namespace tessera {

bool has_hdf5() { return false; }

Hdf5Array::Hdf5Array(const std::string& path, const std::string&) {
  throw Error(ExitCode::usage, path + ": this program was built without HDF5");
}

void Hdf5Array::read(Range, DType, void*) const {}  // never called

}  // namespace tessera
