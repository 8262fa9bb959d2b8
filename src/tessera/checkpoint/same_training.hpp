// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/config/config.hpp>

namespace tessera {

/// Throws Error, with the first key that differs, unless a training with this configuration can go
/// on from a checkpoint that was written with another one (as JSON): model, data, global batch and
/// kind of optimizer must be the same. The rest may change: mesh, strategy, precision, rates.
void check_same_training(const std::string& path, const std::string& written_with,
                         const Config& config);

}  // namespace tessera
