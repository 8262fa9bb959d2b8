// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tessera {

/// Shortens a list of texts. Three or more runs that follow one another and differ only in numbers,
/// each of which is constant or grows or shrinks by the same amount from run to run, become one
/// text: {"forward(block1, m0)", "forward(block2, m0)", "forward(block3, m0)"} becomes
/// {"3 x [forward(block1..3, m0)]"}. Runs of runs are shortened as well.
std::vector<std::string> folded(const std::vector<std::string>& texts);

}  // namespace tessera
