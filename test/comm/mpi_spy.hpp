// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tessera::test {

/// Counts what this process calls of MPI, through the profiling interface of the library.
struct MpiSpy {
  static void reset();
  static int count(std::string_view function);
  static int calls();  ///< that communicate
  static int communicators_made();
};

}  // namespace tessera::test
