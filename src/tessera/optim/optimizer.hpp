// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>
#include <tessera/optim/optimizer_config.hpp>
#include <tessera/random/fill.hpp>

namespace tessera {

/// Contiguous parameters and their gradients, of the same extent. `decays`: weight decay acts on
/// them. With `sign_rate` each update is p -= sign_rate sign(g) instead.
template <class T>
struct ParameterRun {
  Vector<T> params;
  Vector<const T> grads;
  bool decays = true;
  T sign_rate = 0;
  Size first = 0;          ///< place of the first moments
  Size second = 0;         ///< place of the second moments, which matrices of muon do not have
  bool is_matrix = false;  ///< of muon
  /// With moments in bf16: their rounding draws the numbers of these elements of the parameter with
  /// this key, so that it does not depend on how ranks split the parameter.
  Key key{};
  BlockRun place{};
};

/// Updates a flat shard of parameters. Elements are independent, so separately updated shards have
/// the bits of the whole updated at once. T: float, double.
template <class T>
class Optimizer {
 public:
  /// Allocates zero moments for n parameters, of which `matrices` have no second ones. Throws
  /// ConfigError like validate().
  Optimizer(const OptimizerConfig& config, Size n, Size matrices = 0);

  /// Makes one update with the gradients grads * grad_scale. Does not wait for the device. Throws
  /// Error (usage) if an extent is not n.
  void step(const Vector<T>& params, const Vector<const T>& grads, T learning_rate,
            T grad_scale = 1);
  /// Makes one update of n parameters in several runs, with one kernel each. Runs must have the
  /// same extents in every call, because their moments follow each other. None is a matrix of muon.
  void step(std::span<const ParameterRun<T>> runs, T learning_rate, T grad_scale = 1);
  /// Sets the places of the moments of runs, which follow each other.
  static void place_moments(std::span<ParameterRun<T>> runs);
  /// Updates a run in the update number steps(). Of a matrix of muon, updates the momentum and
  /// writes the direction that is orthogonalized.
  void update(const ParameterRun<T>& run, T learning_rate, T grad_scale,
              const Vector<T>& direction = {});
  /// Moves a run of a matrix along its part of the orthogonal matrix.
  void move(const ParameterRun<T>& run, T learning_rate, T scale, const Vector<T>& direction) const;

  const OptimizerConfig& config() const { return config_; }
  /// Returns all moments, (moments_per_parameter() * n), one moment after the other; empty if they
  /// are kept in bf16.
  const Vector<T>& moments() const { return moments_; }
  /// Returns moment i, (n), a view of moments(): 0 is momentum, Adam's m or rmsprop's v; 1 is
  /// Adam's v.
  Vector<T> moment(Size i) const;
  /// The same with MomentsType::bf16.
  Vector<BFloat16> bf16_moment(Size i) const;

  /// Returns the number of updates so far.
  Size steps() const { return steps_; }
  void set_steps(Size steps) { steps_ = steps; }

 private:
  template <class M>
  void update_in(const Vector<M>& moments, const ParameterRun<T>& run, T learning_rate,
                 T grad_scale, const Vector<T>& direction);

  OptimizerConfig config_;
  Size n_, matrices_;
  Size steps_ = 0;
  Vector<T> moments_;
  Vector<BFloat16> bf16_moments_;
};

}  // namespace tessera
