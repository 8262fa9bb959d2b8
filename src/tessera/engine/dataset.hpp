// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <tessera/base/split.hpp>
#include <tessera/base/view.hpp>
#include <tessera/config/config.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/random/threefry.hpp>

namespace tessera {

/// This rank's samples of one batch, as aliases of the data set's memory. T: the state type.
template <class T>
struct Batch {
  Matrix<const T> x;        ///< (samples * input positions, input width)
  Matrix<const T> y;        ///< (samples * output positions, target width)
  Size samples = 0;         ///< samples of this rank
  Size first = 0;           ///< number of the rank's first sample in the whole batch
  Size global_samples = 0;  ///< samples of the whole batch
  bool from_prior = false;  ///< BatchFacts::from_prior
};

/// The samples of a rank in device memory. In batches of B samples, batch k consists of the samples
/// k B to (k + 1) B - 1 in the order of the epoch; the last batch may be smaller. Each rank gets
/// its balanced share of every batch. A sample has one row per position of the model:
/// input_positions rows of x and output_positions() rows of y. Along `context` a rank holds whole
/// samples and copies its positions of a batch. T: the state type.
template <class T>
class Dataset {
 public:
  /// Wraps arrays that every rank holds whole: x (samples * input positions, input width) and y
  /// (samples * output positions, target width), for PlanInput::samples samples. Throws ConfigError
  /// if their extents differ from these.
  static Dataset wrap(const Plan& plan, Size rank, const Matrix<T>& x, const Matrix<T>& y);

  /// Makes this rank's samples, or all samples if they are shuffled. A sample depends only on its
  /// number and on the seed or the file. Throws ConfigError if the files do not contain the
  /// samples.
  static Dataset generate(const Plan& plan, Size rank, const DataConfig& config);
  /// Makes this rank's validation samples. Their numbers follow those of the training samples. They
  /// are not shuffled.
  static Dataset validation(const Plan& plan, Size rank, const DataConfig& config);

  Size num_samples() const { return samples_; }
  Size num_batches() const { return (samples_ + batch_size_ - 1) / batch_size_; }
  /// Returns true if the data set owns its memory, false if it wraps arrays.
  bool owns_memory() const { return compact_ || shuffle_; }
  /// Returns this rank's samples of batch k. `epoch` determines the order of shuffled samples. A
  /// copied batch is valid until the next call.
  Batch<T> batch(Size k, Size epoch = 0) const;

 private:
  Dataset(const Plan& plan, Size rank, Size samples);
  static Dataset made(const Plan& plan, Size rank, const DataConfig& config, Range numbers,
                      bool shuffles);
  void allocate_batch(const Plan& plan);
  void fill(const DataConfig& config, const ModelSpec& model, Size first);
  Size batch_samples(Size k) const;  ///< samples of batch k over all ranks

  PlanInput input_;
  Size rank_ = 0;
  Size samples_ = 0;
  Size batch_size_ = 0;
  Range full_share_{};  ///< of this rank in a batch of batch_size_ samples
  Size x_positions_ = 1, y_positions_ = 1;
  SplitPart share_{};     ///< the positions of a sample that this rank copies
  bool compact_ = false;  ///< x_ and y_ hold only this rank's samples, batch after batch
  Matrix<T> x_;
  Matrix<T> y_;
  std::optional<Key> shuffle_{};  ///< determines the orders of all epochs; none without shuffling
  Matrix<T> batch_x_, batch_y_;   ///< buffers of a batch that is copied
};

}  // namespace tessera
