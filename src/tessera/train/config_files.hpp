// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/config/config.hpp>
#include <tessera/io/file_uses.hpp>

namespace tessera {

/// Returns the files that a training with this configuration reads.
std::vector<FileUse> inputs_of(const Config& config);

/// Returns the files that it writes, and the directories in which it does.
std::vector<FileUse> outputs_of(const Config& config);

}  // namespace tessera
