// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <tessera/base/split.hpp>
#include <tessera/base/view.hpp>
#include <tessera/config/config.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/random/threefry.hpp>

namespace tessera {

/// This rank's samples of one batch: aliases of the data set's memory.
template <class T>
struct Batch {
  Matrix<const T> x;  ///< (local samples * positions, input width)
  Matrix<const T> y;  ///< (local samples * positions, target width)
  Size samples = 0;
  Size first = 0;           ///< number of the first of them in the whole batch
  Size global_samples = 0;  ///< of the whole batch
  bool from_prior = false;  ///< as in BatchFacts
};

/// Samples in device memory, visited in order: batch k is the samples [k B, (k + 1) B), the last
/// batch may be smaller, and each rank sees its share of every batch. A sample has as many rows as
/// the model has positions there.
template <class T>
class Dataset {
 public:
  /// Wraps arrays that every rank holds whole: x (samples * positions, input width) and y (samples
  /// * positions, target width). Throws ConfigError if they do not fit each other or the plan's
  /// model.
  static Dataset wrap(const Plan& plan, Size rank, const Matrix<T>& x, const Matrix<T>& y);

  /// Makes this rank's samples, and no others, or all of them if their order is to change. A sample
  /// depends on the seed, or a file, and its number only. Throws ConfigError for files that do not
  /// have them.
  static Dataset generate(const Plan& plan, Size rank, const DataConfig& config);
  /// The same of the plan's validation samples, whose numbers follow; their order stays.
  static Dataset validation(const Plan& plan, Size rank, const DataConfig& config);

  Size num_samples() const { return samples_; }
  Size num_batches() const { return (samples_ + batch_size_ - 1) / batch_size_; }
  /// Whether the memory is the data set's own, not that of wrapped arrays.
  bool owns_memory() const { return compact_ || shuffle_; }
  /// `epoch` decides about the order of samples that are shuffled; a shuffled batch lasts until the
  /// next one.
  Batch<T> batch(Size k, Size epoch = 0) const;

 private:
  Dataset(const Plan& plan, Size rank, Size samples);
  static Dataset made(const Plan& plan, Size rank, const DataConfig& config, Range numbers,
                      bool shuffles);
  void fill(const DataConfig& config, const ModelSpec& model, Size first);
  Size batch_samples(Size k) const;  ///< global

  MeshShape mesh_;
  Size rank_ = 0;
  Size samples_ = 0;
  Size batch_size_ = 0;
  Size x_positions_ = 1, y_positions_ = 1;
  bool compact_ = false;  ///< x_ and y_ hold this rank's samples only, batch after batch
  Matrix<T> x_;
  Matrix<T> y_;
  std::optional<Key> shuffle_{};
  Matrix<T> batch_x_, batch_y_;  ///< of shuffled samples
};

}  // namespace tessera
