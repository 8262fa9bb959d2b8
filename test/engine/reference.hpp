// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/config/config.hpp>

namespace tessera::train_test {

/// A row-major matrix on the host.
struct Table {
  Size rows = 0, cols = 0;
  std::vector<double> values{};
  std::span<const double> row(Size i) const {
    return {values.data() + i * cols, static_cast<std::size_t>(cols)};
  }
};

/// An independent implementation of training on one rank: one sample after another, in double, with
/// plain loops on the host. Calls nothing of src/tessera/{nn,optim,plan,train}.
class Reference {
 public:
  /// `parameters` holds the initial parameters in the order of the flat arena.
  Reference(const ModelConfig& model, const TrainingConfig& training,
            std::vector<double> parameters);

  /// Returns the loss of every epoch: the mean of its batches' losses.
  std::vector<double> fit(const Table& x, const Table& y);

  /// Computes the gradient of the mean loss of these rows, or of its sum if the configuration says
  /// so. Returns the mean loss.
  double compute_gradients(const Table& x, const Table& y, Range rows);

  const std::vector<double>& gradients() const { return gradients_; }
  const std::vector<double>& parameters() const { return parameters_; }

 private:
  double add_sample(std::span<const double> x, std::span<const double> y, double weight);
  void clip_by_value();
  double norm_factor() const;
  void update(double rate, double factor);

  ModelConfig model_;
  TrainingConfig training_;
  std::vector<double> parameters_, gradients_, first_moment_, second_moment_, weight_decay_;
  Size steps_ = 0;
};

}  // namespace tessera::train_test
