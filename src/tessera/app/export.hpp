// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include <tessera/base/placement.hpp>
#include <tessera/base/view.hpp>
#include <tessera/io/file_uses.hpp>
#include <tessera/train/trainer.hpp>

namespace tessera {

/// Returns the files that --export writes, for check_distinct().
std::vector<FileUse> exported_files(const std::filesystem::path& directory);

/// Creates the directory. Throws ConfigError for --export if the files cannot be written to it.
void check_export(const std::filesystem::path& directory);

/// Writes x.npy, y.npy and prediction.npy, each (samples, positions, columns), to the directory,
/// for the first validation samples or, without any, the first training samples: about 65536 rows.
/// A generative model also writes as many samples of its own to sample.npy. Needs an earlier fit().
/// Collective.
template <class T>
void export_predictions(const std::filesystem::path& directory, Trainer<T>& trainer,
                        const DataConfig& data);

/// Writes row-major device values as an array in NumPy's format 1.0, for numpy.load(). Throws Error
/// (usage) if the file cannot be written. T: float, double.
template <class T>
void write_npy(const std::filesystem::path& path, const Vector<T>& values, const Shape& shape);

}  // namespace tessera
