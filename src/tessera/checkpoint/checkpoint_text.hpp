// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tessera {

/// What is in a checkpoint, for `tessera checkpoint show`: where the training stands, who wrote it,
/// and every array. Throws Error for what read_state() does not accept.
std::string checkpoint_text(const std::string& path);

}  // namespace tessera
