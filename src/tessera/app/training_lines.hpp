// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/train/reporter.hpp>

namespace tessera {

/// Returns the line that shows the progress of a training.
std::string training_line(const TrainingProgress& progress);

/// Returns the parts of a loss in parentheses, " (cross_entropy 2.1, balance_loss 0.01)", or "" for
/// none.
std::string parts_text(const std::vector<NamedNumber>& parts);

}  // namespace tessera
