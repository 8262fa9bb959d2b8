// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/split.hpp>
#include <tessera/base/view.hpp>
#include <tessera/config/config.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// This rank's rows of one batch: aliases of the data set's memory.
template <class T>
struct Batch {
  Matrix<const T> x;  ///< (local rows, input width)
  Matrix<const T> y;  ///< (local rows, output width)
  Size global_rows = 0;
};

/// Samples in device memory, visited in order: batch k is the global rows [k B, (k + 1) B), the
/// last batch may be smaller, and each rank sees its share of every batch.
template <class T>
class Dataset {
 public:
  /// Wraps arrays that every rank holds whole: x (samples, input width), y (samples, output width).
  /// Throws ConfigError if they do not fit each other or the plan's model.
  static Dataset wrap(const Plan& plan, Size rank, const Matrix<T>& x, const Matrix<T>& y);

  /// Draws this rank's rows, and no others. An element depends on the seed and its global index
  /// only.
  static Dataset generate(const Plan& plan, Size rank, const DataConfig& config);

  Size num_samples() const { return samples_; }
  Size num_batches() const { return (samples_ + batch_size_ - 1) / batch_size_; }
  /// Whether the memory is the data set's own, not that of wrapped arrays.
  bool owns_memory() const { return compact_; }
  Batch<T> batch(Size k) const;

 private:
  Dataset(const Plan& plan, Size rank);
  Size batch_rows(Size k) const;  ///< global

  MeshShape mesh_;
  Size rank_ = 0;
  Size samples_ = 0;
  Size batch_size_ = 0;
  bool compact_ = false;  ///< x_ and y_ hold this rank's rows only, batch after batch
  Matrix<T> x_;
  Matrix<T> y_;
};

}  // namespace tessera
