// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <tessera/base/split.hpp>
#include <tessera/base/view.hpp>
#include <tessera/data/data_config.hpp>
#include <tessera/nn/model_spec.hpp>

namespace tessera {

/// Samples that a rank makes in one go. T: the state type.
template <class T>
struct DataBlock {
  Range samples;  ///< their numbers in the data set
  Matrix<T> x;    ///< (samples * positions, input width)
  Matrix<T> y;    ///< (samples * positions, target width)
};

/// One kind of data. To add one, write such a row in a file of its own.
struct DataRow {
  /// Throws ConfigError if there are no such samples for this model. Looks at no file, so that a
  /// plan can be made without.
  void (*check)(const DataConfig& data, const ModelSpec& model);
  bool reads_file = false;    ///< data.file
  bool reads_arrays = false;  ///< data.x and data.y
  /// Throws ConfigError unless the files have these samples.
  void (*check_files)(const DataConfig& data, const ModelSpec& model) = [](const DataConfig&,
                                                                           const ModelSpec&) {};

  /// A function for each state type, of one generic lambda without captures.
  struct Fill {
    template <class F>
    constexpr Fill(F f) : of_float(f), of_double(f) {}

    void run(const DataConfig& c, const ModelSpec& m, const DataBlock<float>& b) const {
      of_float(c, m, b);
    }
    void run(const DataConfig& c, const ModelSpec& m, const DataBlock<double>& b) const {
      of_double(c, m, b);
    }

   private:
    void (*of_float)(const DataConfig&, const ModelSpec&, const DataBlock<float>&);
    void (*of_double)(const DataConfig&, const ModelSpec&, const DataBlock<double>&);
  };
  Fill fill;
  /// Device memory that `fill` has for itself, the same for any number of samples.
  Size (*scratch_bytes)(const ModelSpec& model) = [](const ModelSpec&) { return Size{0}; };

  /// The least mean loss that any model can reach on unseen samples, where it is known.
  std::optional<double> (*best_loss)(const ModelSpec& model) = nullptr;
};

const DataRow& row_of(DataKind kind);

/// Throws ConfigError for the key data.kind, with what the model would need.
[[noreturn]] void reject_data_kind(const DataConfig& data, const std::string& needed);

/// A sample is a row of numbers, and the prediction has its shape.
bool predicts_its_input(const ModelSpec& model);

// In a file each.
extern const DataRow sum_of_squares_data, random_data, copy_task_data, bytes_data, blobs_data,
    idx_data, poisson_points_data, darcy_data, npy_data, hdf5_data;

}  // namespace tessera
