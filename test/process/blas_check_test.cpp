// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <tessera/base/openblas_core.hpp>
#include <tessera/process/blas_check.hpp>

namespace tessera {
namespace {

TEST(BlasCheck, ChoosesTheCoreByTheFeaturesOfTheProcessor) {
  constexpr CpuFeatures sse{}, avx2{true, false}, avx512{true, true};
  for (const std::string core : {"Prescott", "Sandybridge", "Steamroller"}) {
    EXPECT_EQ(faster_core(avx512, core), "SkylakeX") << core;
    EXPECT_EQ(faster_core(avx2, core), "Haswell") << core;
    EXPECT_EQ(faster_core(sse, core), "") << core;
  }
  for (const std::string core : {"Haswell", "Zen"}) {
    EXPECT_EQ(faster_core(avx512, core), "SkylakeX") << core;
    EXPECT_EQ(faster_core(avx2, core), "") << core;
  }
  for (const std::string core : {"SkylakeX", "Cooperlake", "Unknown"})
    EXPECT_EQ(faster_core(avx512, core), "") << core;
}

#ifdef __x86_64__
TEST(BlasCheck, NamesTheVersionsOfOneDnnThatBreakSignalHandlers) {
  EXPECT_EQ(onednn_text(2, 11, 3), "oneDNN 2.11.3 (breaks signal handlers)");
  EXPECT_EQ(onednn_text(3, 10, 2), "oneDNN 3.10.2 (breaks signal handlers)");
  EXPECT_EQ(onednn_text(3, 11, 0), "oneDNN 3.11.0");
  EXPECT_EQ(onednn_text(4, 0, 0), "oneDNN 4.0.0");
}
#endif

}  // namespace
}  // namespace tessera
