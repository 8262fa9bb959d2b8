// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <limits>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/base/types.hpp>
#include <tessera/optim/loss_scale.hpp>

namespace tessera {

/// The state of a training between two steps, except its tensors.
struct TrainingState {
  Size step = 0;  ///< steps made
  LossScaleState loss_scale{};
  std::vector<double> epoch_losses{};  ///< one per finished epoch
  /// Loss sums of the predictions of the batches of the unfinished epoch; with ignored targets, the
  /// mean loss times all targets. Their number is the position in the data, whose order follows
  /// from seed and epoch.
  std::vector<double> losses_so_far{};
  /// Sums of the terms that layers add to these losses (loss_terms_of()), batch after batch.
  std::vector<double> layer_losses_so_far{};
  /// Epoch, loss and relative error of each validation; the error may be NaN.
  std::vector<std::array<double, 3>> validations{};
  /// Validation::parts of each validation, one after another.
  std::vector<double> validation_parts{};
  nlohmann::json config = nullptr;      ///< resolved
  nlohmann::json provenance = nullptr;  ///< of the run that wrote it
  std::string data{};                   ///< sample_checksums()
  std::string training{};               ///< name of the training's folder

  friend bool operator==(const TrainingState&, const TrainingState&) = default;

  Size epoch() const { return static_cast<Size>(epoch_losses.size()); }
  Size batch() const { return static_cast<Size>(losses_so_far.size()); }
  /// Returns the loss by which checkpoints of a training are compared: after an epoch its
  /// validation loss, or its training loss if the training has no validation samples; otherwise
  /// infinity.
  double loss(bool has_validation_samples) const {
    const bool is_validated =
        !validations.empty() && validations.back()[0] == static_cast<double>(epoch());
    if (batch() > 0 || epoch_losses.empty() || (has_validation_samples && !is_validated))
      return std::numeric_limits<double>::infinity();
    return has_validation_samples ? validations.back()[1] : epoch_losses.back();
  }
};

}  // namespace tessera
