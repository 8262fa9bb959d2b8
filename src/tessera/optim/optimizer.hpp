// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>
#include <tessera/optim/optimizer_config.hpp>

namespace tessera {

/// A run of parameters and their gradients, of the same extent.
template <class T>
struct ParameterRun {
  Vector<T> params;
  Vector<const T> grads;
};

/// Updates a flat shard of parameters: every element for itself, so that shards updated apart are
/// bit for bit the whole updated at once. T: float, double.
template <class T>
class Optimizer {
 public:
  /// For n parameters; allocates the moments, zero. Throws ConfigError (validate()).
  Optimizer(const OptimizerConfig& config, Size n);

  /// One update in one kernel, with gradients grads * grad_scale; all vectors of n elements.
  /// Does not wait for the device. Throws Error if the extents differ from n.
  void step(const Vector<T>& params, const Vector<const T>& grads, T learning_rate,
            T grad_scale = 1);
  /// The same for n parameters that lie in several runs, one kernel each. A run keeps its moments
  /// as long as the runs before it keep their extents.
  void step(std::span<const ParameterRun<T>> runs, T learning_rate, T grad_scale = 1);

  const OptimizerConfig& config() const { return config_; }
  Size size() const { return n_; }

  /// All state, flat: moment after moment, moments_per_parameter() * n elements.
  const Vector<T>& moments() const { return moments_; }
  /// Moment i, (n): 0 is momentum, Adam's m or rmsprop's v; 1 is Adam's v. A view of moments().
  Vector<T> moment(Size i) const;

  /// Updates made so far; set when state is restored.
  Size steps() const { return steps_; }
  void set_steps(Size steps) { steps_ = steps; }

 private:
  void update(const ParameterRun<T>& run, Size first, T learning_rate, T grad_scale);

  OptimizerConfig config_;
  Size n_;
  Size steps_ = 0;
  Vector<T> moments_;
};

}  // namespace tessera
