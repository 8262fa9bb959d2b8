// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/data/data_config.hpp>
#include <tessera/nn/models/model_spec.hpp>

namespace tessera {

/// A run of consecutive samples, with sums of element_hash() over their values in float64.
struct SampleChecksum {
  Range samples;
  std::uint64_t x = 0, y = 0;
};

/// Returns checksums of at most 16 runs of samples, spread evenly over the data set. They depend on
/// the values that a model reads, not on the path of a file or the type of its elements. Each run
/// has at most 65,536 values of x, or is one sample. Empty for data that are not read from files.
/// Throws ConfigError for files that do not have the samples.
std::vector<SampleChecksum> sample_checksums(const DataConfig& data, const ModelSpec& model);

}  // namespace tessera
