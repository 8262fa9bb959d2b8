// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/base/placement.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// What precedes the values of a row-major array of float32 or float64 in NumPy's format 1.0: magic
/// string, version, length of the rest, and a dictionary padded to a multiple of 64 bytes.
std::string npy_header(DType type, const Shape& shape);

}  // namespace tessera
