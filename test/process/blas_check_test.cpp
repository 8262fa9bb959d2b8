// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/process/blas_check.hpp>

namespace tessera {
namespace {

constexpr CpuFeatures sse_only{};
constexpr CpuFeatures avx2{true, false};
constexpr CpuFeatures avx512{true, true};

struct Row {
  CpuFeatures cpu;
  const char* core;
  std::optional<std::string> expected;
};

TEST(BlasCheck, ChoosesTheCoreByTheFeaturesOfTheProcessor) {
  const std::vector<Row> table = {
      {avx512, "Prescott", "SkylakeX"},     {avx512, "Haswell", "SkylakeX"},
      {avx512, "Zen", "SkylakeX"},          {avx512, "Sandybridge", "SkylakeX"},
      {avx512, "SkylakeX", std::nullopt},   {avx512, "Cooperlake", std::nullopt},
      {avx512, "Unknown", std::nullopt},    {avx2, "Prescott", "Haswell"},
      {avx2, "Core2", "Haswell"},           {avx2, "Sandybridge", "Haswell"},
      {avx2, "Haswell", std::nullopt},      {avx2, "Zen", std::nullopt},
      {sse_only, "Prescott", std::nullopt},
  };
  for (const Row& row : table)
    EXPECT_EQ(better_core(row.cpu, {"0.3.21", row.core, true}), row.expected) << row.core;
}

TEST(BlasCheck, DescribesTheLibrary) {
  BlasStatus status;
  EXPECT_EQ(describe(status), "unknown");
  status.library = "/lib/libblas.so.3";
  EXPECT_EQ(describe(status), "/lib/libblas.so.3 (not OpenBLAS)");
  status.blas = OpenBlas{"0.3.21", "Haswell", true};
  EXPECT_EQ(describe(status), "OpenBLAS 0.3.21, core Haswell");
  status.advice = "advice";
  status.threads = 2;
  EXPECT_EQ(describe(status), "OpenBLAS 0.3.21, core Haswell (advice), 2 threads");
  status.onednn = "3.11.0";
  EXPECT_EQ(describe(status), "OpenBLAS 0.3.21, core Haswell (advice), oneDNN 3.11.0, 2 threads");
}

#ifdef __x86_64__
TEST(BlasCheck, NamesTheVersionsOfOneDnnThatBreakSignalHandlers) {
  for (const char* version : {"2.6.3", "2.11.0", "3.0.0", "3.10.2"})
    EXPECT_TRUE(breaks_signal_handlers(version)) << version;
  for (const char* version : {"", "3.11.0", "3.12.1", "4.0.0"})
    EXPECT_FALSE(breaks_signal_handlers(version)) << version;
  BlasStatus status;
  status.onednn = "2.6.3";
  EXPECT_EQ(describe(status), "unknown, oneDNN 2.6.3 (breaks signal handlers)");
}
#endif

}  // namespace
}  // namespace tessera
