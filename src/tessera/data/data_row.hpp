// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/base/view.hpp>
#include <tessera/data/data_config.hpp>
#include <tessera/nn/models/model_spec.hpp>

namespace tessera {

/// Consecutive samples that a rank makes at once. T: the state type.
template <class T>
struct DataBlock {
  Range samples;  ///< their indices in the data set
  Matrix<T> x;    ///< (samples * positions, input width)
  Matrix<T> y;    ///< (samples * positions, target width)
};

template <class T>
using Blocks = std::vector<DataBlock<T>>;

/// A value of data.samples: the samples of the files, less those for validation. count_samples()
/// replaces it.
inline constexpr Size every_sample = std::numeric_limits<Size>::min() + 1;

/// How many samples a file or array has.
struct SamplesOfFile {
  std::string key, name;  ///< "data.file" and its value
  std::string what;       ///< "has 60000 images", for messages
  Size samples;
};

/// A kind of data. Each kind is a file with such a row.
struct DataRow {
  /// Throws ConfigError if the model cannot read such samples. Reads no file, so that a plan needs
  /// none.
  void (*check)(const DataConfig& data, const ModelSpec& model);
  bool reads_file = false;    ///< uses data.file
  bool reads_arrays = false;  ///< uses data.x and data.y
  /// Returns how many samples each file has; none if the kind reads no files. Throws ConfigError
  /// for files that are damaged or that the model cannot read.
  std::vector<SamplesOfFile> (*count_samples)(const DataConfig& data, const ModelSpec& model) =
      [](const DataConfig&, const ModelSpec&) { return std::vector<SamplesOfFile>{}; };

  /// Makes blocks of samples in ascending order. A kind passes a lambda without captures: either
  /// (data, model, block) fills a block of either state type, or (data, model) returns a function
  /// that does, and that keeps its files open between blocks.
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
      if constexpr (std::is_invocable_v<Make, const DataConfig&, const ModelSpec&, DataBlock<T>>) {
        for (const DataBlock<T>& block : blocks) Make{}(data, model, block);
      } else {
        auto fill_block = Make{}(data, model);
        for (const DataBlock<T>& block : blocks) fill_block(block);
      }
    }

    void (*of_float_)(const DataConfig&, const ModelSpec&, const Blocks<float>&);
    void (*of_double_)(const DataConfig&, const ModelSpec&, const Blocks<double>&);
  };
  Fill fill;
  /// Returns the bytes of device scratch memory of `fill`, for any number of samples.
  Size (*scratch_bytes)(const ModelSpec& model) = [](const ModelSpec&) { return Size{0}; };

  /// Returns the least mean loss that a model can reach on unseen samples, if it is known.
  std::optional<double> (*best_loss)(const ModelSpec& model) = nullptr;
};

const DataRow& row_of(DataKind kind);

/// Throws ConfigError if the files lack the samples.
void check_files(const DataConfig& data, const ModelSpec& model);

/// Returns the number of samples of the files, less those for validation. Throws ConfigError if
/// none are left, or if the kind of data reads no files.
Size samples_in_files(const DataConfig& data, const ModelSpec& model);

/// Throws ConfigError for the key data.kind, with what the model needs.
[[noreturn]] void reject_data_kind(const DataConfig& data, const std::string& needed);

/// Returns the side of a square of this number of cells: the square root, rounded to nearest.
Size side_of_square(Size cells);

/// Returns true if a sample is one row and the prediction has its shape.
bool predicts_its_input(const ModelSpec& model);

// Each is defined in its own file.
extern const DataRow sum_of_squares_data, random_data, copy_task_data, bytes_data, blobs_data,
    idx_data, poisson_points_data, darcy_data, npy_data, hdf5_data;

}  // namespace tessera
