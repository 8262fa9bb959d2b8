// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tessera::test {

/// Counts the MPI calls of this process, through the profiling interface.
struct MpiSpy {
  static void reset();
  static int count(std::string_view function);
  static int calls();  ///< number of calls that communicate
  static int communicators_made();
};

}  // namespace tessera::test
