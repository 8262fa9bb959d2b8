// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <limits>
#include <string>
#include <vector>

#include <tessera/base/types.hpp>
#include <tessera/optim/loss_scale.hpp>

namespace tessera {

/// What a training is between two steps, beside its tensors.
struct TrainingState {
  Size step = 0;  ///< how many have been made
  LossScaleState loss_scale{};
  std::vector<double> epoch_losses{};  ///< of all epochs that have ended
  /// Sums of the losses of the batches that the next epoch has seen: how many there are is where
  /// the training stands in the data, whose order follows from seed and epoch.
  std::vector<double> losses_so_far{};
  /// Epoch, loss and relative error of each validation; NaN where there is no error to compute.
  std::vector<std::array<double, 3>> validations{};
  std::string config{};      ///< resolved, as JSON
  std::string provenance{};  ///< of the run that wrote it, as JSON
  std::string data{};        ///< checksums of samples from files, see samples_text()
  std::string training{};    ///< tells the checkpoints of this training from those of others

  Size epoch() const { return static_cast<Size>(epoch_losses.size()); }
  Size batch() const { return static_cast<Size>(losses_so_far.size()); }
  /// By which checkpoints are compared: after an epoch the loss of its validation, or its own
  /// without one; infinite in the middle of an epoch, which nobody has a loss of.
  double loss() const {
    if (batch() > 0 || epoch_losses.empty()) return std::numeric_limits<double>::infinity();
    if (!validations.empty() && validations.back()[0] == static_cast<double>(epoch()))
      return validations.back()[1];
    return epoch_losses.back();
  }
};

}  // namespace tessera
