// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/base/view.hpp>
#include <tessera/data/data_config.hpp>
#include <tessera/nn/models/model_spec.hpp>

namespace tessera {

/// Returns checksums of samples from files as JSON, [[x, y], ...]: sums of element_hash() over the
/// values, as float64, of at most 16 runs of samples, spread evenly over the data set. A run has at
/// most 65,536 values of x, or is one sample. They depend on the values that a model reads, not on
/// paths or element types. Returns "[]" for data that are not read from files. Throws ConfigError
/// for files that lack the samples.
std::string sample_checksums(const DataConfig& data, const ModelSpec& model);

/// The same of arrays that hold all samples; "[]" if they do not fit the model.
template <class T>
std::string sample_checksums(const Matrix<T>& x, const Matrix<T>& y, const ModelSpec& model);

/// Returns the files of the data: "data.x = x.npy, data.y = y.npy".
std::string data_files_text(const DataConfig& data);

}  // namespace tessera
