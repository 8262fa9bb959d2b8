// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>

#include <tessera/base/alias.hpp>

namespace tessera {
namespace {

/// Returns the kernel's flags of the mapping that holds an address, such as "rd wr mr mw me hg".
std::string mapping_flags(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream file("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    if (std::istringstream(line) >> std::hex >> begin >> dash >> end && dash == '-')
      inside = begin <= wanted && wanted < end;
    if (inside && line.starts_with("VmFlags:")) return line;
  }
  return "";
}

class HugePages : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::is_same_v<MemSpace, Kokkos::HostSpace>) GTEST_SKIP() << "device memory";
    if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage/enabled"))
      GTEST_SKIP() << "this system has no transparent huge pages";
  }
};

TEST_F(HugePages, AreRequestedForLargeMemory) {
  const Vector<float> large = allocate_vector<float>("tessera::test", 4 << 20);
  EXPECT_NE(mapping_flags(large.data() + (2 << 20)).find(" hg"), std::string::npos);
  const Matrix<float> matrix = allocate_matrix<float>("tessera::test", 2 << 10, 2 << 10);
  EXPECT_NE(mapping_flags(matrix.data() + (2 << 20)).find(" hg"), std::string::npos);
}

TEST_F(HugePages, DoNotIncludeOtherMemory) {
  const Vector<char> bytes = allocate_vector<char>("tessera::test", 16 << 20);
  const Vector<char> small = allocate_vector<char>("tessera::test", 1000);
  EXPECT_EQ(mapping_flags(small.data()).find(" hg"), std::string::npos);
  advise_huge_pages(bytes.data() + 3, (8 << 20) + 5);
  advise_huge_pages(nullptr, 0);
}

TEST(Allocation, ZerosAreZero) {
  const Size n = (8 << 20) + 3;
  const Vector<float> zeros = allocate_zeros<float>("tessera::test", n);
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), zeros);
  EXPECT_EQ(std::count(host.data(), host.data() + n, 0.0F), n);
  EXPECT_FALSE(allocate_zeros<float>("tessera::test", 0).is_allocated());
}

}  // namespace
}  // namespace tessera
