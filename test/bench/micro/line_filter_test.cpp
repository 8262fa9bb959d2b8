// SPDX-License-Identifier: Apache-2.0
#include "micro/line_filter.hpp"

#include <sstream>

#include <gtest/gtest.h>

namespace tessera::bench {
namespace {

TEST(LineFilter, LeavesOutOneLineAndNoOther) {
  std::ostringstream kept;
  {
    LineFilter filter(kept, "built as DEBUG");
    std::ostream stream(&filter);
    stream << "***WARNING*** CPU scaling is "
           << "enabled.\n"
           << "***WARNING*** Library was built" << std::flush << " as DEBUG. Timings\n"
           << "Load: " << 1.5 << std::endl;
    EXPECT_EQ(kept.str(), "***WARNING*** CPU scaling is enabled.\nLoad: 1.5\n");
    stream << "no end of line";
  }
  EXPECT_EQ(kept.str(), "***WARNING*** CPU scaling is enabled.\nLoad: 1.5\nno end of line");
}

}  // namespace
}  // namespace tessera::bench
