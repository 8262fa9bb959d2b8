// SPDX-License-Identifier: Apache-2.0
// Texts of the commands `checkpoint show`, `checkpoint verify` and `diff` about checkpoints. All
// functions throw Error (usage) for a file that is no checkpoint or is damaged.
#pragma once

#include <string>
#include <vector>

#include <tessera/base/types.hpp>

namespace tessera {

/// Returns the progress of the training, the provenance and all arrays as text.
std::string checkpoint_text(const std::string& path);

/// Reads all arrays and compares their checksums. Returns their bytes.
Size verify_checkpoint(const std::string& path);

/// An array whose bits differ in two checkpoints.
struct ArrayDifference {
  std::string name;  ///< "layer1/kernel", "moment1/layer1/kernel"
  Size elements = 0, different = 0;
  Size most_ulps = 0;  ///< largest distance of two values, in numbers of the type (ulp)
};

/// Returns the arrays that differ, in the order of their names. Throws Error (usage) also if arrays
/// differ in name, shape or type.
std::vector<ArrayDifference> compare_checkpoints(const std::string& a, const std::string& b);

}  // namespace tessera
