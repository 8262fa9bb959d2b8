// SPDX-License-Identifier: Apache-2.0
// The facts that `checkpoint show` and `checkpoint verify` print. Both functions throw Error
// (usage) for a file that is no checkpoint or is damaged.
#pragma once

#include <string>

#include <tessera/base/types.hpp>

namespace tessera {

/// Returns the progress of the training, the provenance and all arrays as text.
std::string checkpoint_text(const std::string& path);

/// Reads all arrays and compares their checksums. Returns their bytes.
Size verify_checkpoint(const std::string& path);

}  // namespace tessera
