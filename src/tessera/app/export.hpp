// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include <tessera/base/placement.hpp>
#include <tessera/base/view.hpp>
#include <tessera/train/trainer.hpp>

namespace tessera {

/// Throws ConfigError for the key --export unless the directory is there or can be made.
void check_export(const std::filesystem::path& directory);

/// Writes x.npy, y.npy and prediction.npy, each (samples, positions, columns), to the directory:
/// the first validation samples, or else the first ones of the data set, as many as have about
/// 65536 rows. Of a model that draws, as many samples of its own as well: sample.npy. After fit().
/// Collective.
template <class T>
void export_predictions(const std::filesystem::path& directory, Trainer<T>& trainer,
                        const DataConfig& data);

/// Writes row-major values of the device as an array of NumPy's format 1.0, which numpy.load()
/// reads. Throws Error (usage) with the reason if it cannot be written. T: float, double.
template <class T>
void write_npy(const std::filesystem::path& path, const Vector<T>& values, const Shape& shape);

}  // namespace tessera
