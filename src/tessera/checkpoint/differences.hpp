// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/base/types.hpp>

namespace tessera {

/// An array whose bits differ in two checkpoints.
struct ArrayDifference {
  std::string name;  ///< "layer1/kernel", "moment1/layer1/kernel"
  Size elements = 0, different = 0;
  Size most_ulps = 0;  ///< largest distance of two values, in numbers of the type (ulp)
};

/// Returns the arrays that differ, in the order of their names. Throws Error (usage) if a file is
/// no checkpoint, or if their arrays differ in name, shape or type.
std::vector<ArrayDifference> compare_checkpoints(const std::string& a, const std::string& b);

}  // namespace tessera
