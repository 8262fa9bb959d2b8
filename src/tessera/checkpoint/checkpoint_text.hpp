// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tessera {

/// Returns the text of `tessera checkpoint show`: progress of the training, provenance and all
/// arrays. Throws Error like read_state().
std::string checkpoint_text(const std::string& path);

}  // namespace tessera
