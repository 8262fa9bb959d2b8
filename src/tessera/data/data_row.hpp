// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/base/view.hpp>
#include <tessera/data/data_config.hpp>
#include <tessera/nn/models/model_spec.hpp>

namespace tessera {

/// Samples that a rank makes in one go. T: the state type.
template <class T>
struct DataBlock {
  Range samples;  ///< their numbers in the data set
  Matrix<T> x;    ///< (samples * positions, input width)
  Matrix<T> y;    ///< (samples * positions, target width)
};

template <class T>
using Blocks = std::vector<DataBlock<T>>;

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

  /// Makes blocks of samples in the order in which they stand in the data set. A kind gives a
  /// lambda without captures: from (data, model) it makes the function that fills one block after
  /// the other, of either state type, and keeps files open in between.
  class Fill {
   public:
    template <class Make>
    constexpr Fill(Make) : of_float_(fill<Make, float>), of_double_(fill<Make, double>) {}

    void run(const DataConfig& c, const ModelSpec& m, const Blocks<float>& b) const {
      of_float_(c, m, b);
    }
    void run(const DataConfig& c, const ModelSpec& m, const Blocks<double>& b) const {
      of_double_(c, m, b);
    }
    template <class T>
    void run(const DataConfig& c, const ModelSpec& m, const DataBlock<T>& b) const {
      run(c, m, Blocks<T>{b});
    }

   private:
    template <class Make, class T>
    static void fill(const DataConfig& data, const ModelSpec& model, const Blocks<T>& blocks) {
      auto fill_block = Make{}(data, model);
      for (const DataBlock<T>& block : blocks) fill_block(block);
    }

    void (*of_float_)(const DataConfig&, const ModelSpec&, const Blocks<float>&);
    void (*of_double_)(const DataConfig&, const ModelSpec&, const Blocks<double>&);
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
