// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/process/blas_check.hpp>

namespace tessera {
namespace {

constexpr CpuFeatures sse_only{};
constexpr CpuFeatures avx2{true, false, false};
constexpr CpuFeatures avx512{true, true, false};
constexpr CpuFeatures avx512_bf16{true, true, true};

struct Row {
  CpuFeatures cpu;
  const char* core;
  const char* version;
  std::optional<std::string> expected;
};

TEST(BlasCheck, ChoosesTheCoreByWhatTheProcessorHas) {
  const std::vector<Row> table = {
      {avx512_bf16, "Prescott", "0.3.21", "Cooperlake"},
      {avx512_bf16, "Haswell", "0.3.21", "Cooperlake"},
      {avx512_bf16, "Zen", "0.3.21", "Cooperlake"},
      {avx512_bf16, "Haswell", "0.3.8", "SkylakeX"},
      {avx512, "Prescott", "0.3.21", "SkylakeX"},
      {avx512, "haswell", "0.3.21", "SkylakeX"},
      {avx512, "Sandybridge", "0.3.21", "SkylakeX"},
      {avx512_bf16, "SkylakeX", "0.3.21", std::nullopt},
      {avx512_bf16, "Cooperlake", "0.3.21", std::nullopt},
      {avx512_bf16, "SapphireRapids", "0.3.26", std::nullopt},
      {avx2, "Prescott", "0.3.21", "Haswell"},
      {avx2, "Core2", "0.3.21", "Haswell"},
      {avx2, "Nehalem", "0.3.21", "Haswell"},
      {avx2, "Sandybridge", "0.3.21", "Haswell"},
      {avx2, "Haswell", "0.3.21", std::nullopt},
      {avx2, "Zen", "0.3.21", std::nullopt},
      {sse_only, "Prescott", "0.3.21", std::nullopt},
      {sse_only, "Nehalem", "0.3.21", std::nullopt},
      {avx512_bf16, "a core of tomorrow", "0.4.0", std::nullopt},
  };
  for (const Row& row : table) {
    EXPECT_EQ(better_core(row.cpu, {row.version, row.core, true}), row.expected)
        << row.core << " " << row.version;
  }
}

TEST(BlasCheck, ComparesVersionsByNumber) {
  EXPECT_TRUE(version_at_least("0.3.21", "0.3.11"));
  EXPECT_TRUE(version_at_least("0.3.11", "0.3.11"));
  EXPECT_TRUE(version_at_least("1.0", "0.3.11"));
  EXPECT_FALSE(version_at_least("0.3.8", "0.3.11"));
  EXPECT_FALSE(version_at_least("0.2.20.dev", "0.3.11"));
  EXPECT_FALSE(version_at_least("", "0.3.11"));
}

TEST(BlasCheck, SaysWhatWasFoundAndDone) {
  BlasStatus status;
  EXPECT_EQ(describe(status), "unknown");
  status.library = "/lib/libblas.so.3";
  EXPECT_EQ(describe(status), "/lib/libblas.so.3 (not OpenBLAS)");
  status.blas = OpenBlas{"0.3.21", "Cooperlake", true};
  EXPECT_EQ(describe(status), "OpenBLAS 0.3.21, core Cooperlake");
  status.was = "Haswell";
  EXPECT_EQ(describe(status), "OpenBLAS 0.3.21, core Cooperlake (was Haswell: corrected)");
  status.was.reset();
  status.remark = "remark";
  EXPECT_EQ(describe(status), "OpenBLAS 0.3.21, core Cooperlake (remark)");
  status.threads = 2;
  EXPECT_EQ(describe(status), "OpenBLAS 0.3.21, core Cooperlake (remark), 2 threads");
}

}  // namespace
}  // namespace tessera
