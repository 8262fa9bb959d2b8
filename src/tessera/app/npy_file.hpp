// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include <tessera/base/placement.hpp>
#include <tessera/base/view.hpp>

namespace tessera {

/// Writes row-major values of the device as an array of NumPy's format 1.0, which numpy.load()
/// reads. Throws Error (usage) with the reason if it cannot be written. T: float, double.
template <class T>
void write_npy(const std::filesystem::path& path, const Vector<T>& values, const Shape& shape);

}  // namespace tessera
