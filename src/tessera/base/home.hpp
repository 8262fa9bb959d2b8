// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tessera {

/// Returns the text with $HOME in place of a leading "~", as in "~/saves", because shells do so in
/// some places only. Throws Error (usage) for another user's home, "~name/saves", and if HOME is
/// not set.
std::string with_home(const std::string& text);

}  // namespace tessera
