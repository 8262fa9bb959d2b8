// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include <tessera/base/error.hpp>
#include <tessera/base/home.hpp>

namespace tessera {

std::string with_home(const std::string& text) {
  if (!text.starts_with('~')) return text;
  const char* const home = std::getenv("HOME");
  if (home == nullptr || (text.size() > 1 && text[1] != '/'))
    throw Error(ExitCode::usage, "{}: cannot replace ~; write the directory out", excerpt(text));
  return home + text.substr(1);
}

}  // namespace tessera
