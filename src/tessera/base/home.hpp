// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tessera {

/// Returns the text with $HOME in place of a leading "~", as in "~/saves", which shells replace in
/// some places only. Throws Error (usage) for another user's, "~name/saves", and without $HOME.
std::string with_home(const std::string& text);

}  // namespace tessera
