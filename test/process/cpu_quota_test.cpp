// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tessera/process/cpu_quota.hpp>

#include "temporary_directory.hpp"

namespace tessera {
namespace {

/// Makes files such as those of /proc/self and of mounted control groups.
class CpuQuota : public testing::Test {
 protected:
  std::optional<double> quota() const { return cpu_quota(folder_.path() / "process"); }
  void belong(const std::string& groups) { write("process/cgroup", groups); }
  void mount(const std::string& root, const std::string& place, const std::string& type,
             const std::string& options) {
    mounts_ += fmt::format("36 25 0:31 {} {} rw,nosuid shared:9 - {} cgroup rw,{}\n", root,
                           (folder_.path() / place).string(), type, options);
    write("process/mountinfo", mounts_);
  }
  void limit(const std::string& group, const std::string& quota, const std::string& period) {
    write(group + "/cpu.cfs_quota_us", quota + "\n");
    write(group + "/cpu.cfs_period_us", period + "\n");
  }
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((folder_.path() / file).parent_path());
    folder_.write(file, text);
  }

 private:
  test::TemporaryDirectory folder_;
  std::string mounts_ = "23 25 0:5 / /dev rw - devtmpfs udev rw,size=8k\n";
};

TEST_F(CpuQuota, OfVersion2IsTheLeastOfAllGroupsAbove) {
  EXPECT_EQ(quota(), std::nullopt);  // no control groups
  belong("3:cpu:/old\n0::/pod/container\n");
  mount("/", "unified", "cgroup2", "nsdelegate");
  EXPECT_EQ(quota(), std::nullopt);  // no limit is told
  write("unified/pod/container/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  write("unified/pod/cpu.max", "350000 100000\n");
  EXPECT_EQ(quota(), 3.5);
  write("unified/pod/container/cpu.max", "50000 20000\n");
  EXPECT_EQ(quota(), 2.5);
  write("unified/cpu.max", "1000 1000\n");  // that of a container which sees itself as the root
  EXPECT_EQ(quota(), 1.0);
  belong("0::/\n");
  EXPECT_EQ(quota(), 1.0);
}

TEST_F(CpuQuota, OfVersion1IsTheLeastOfAllGroupsAbove) {
  belong("5:cpuset:/other\n4:cpu,cpuacct:/pod/container\n1:name=systemd:/pod/container\n");
  mount("/", "cpuset", "cgroup", "cpuset");
  mount("/", "cpu,cpuacct", "cgroup", "cpu,cpuacct");
  EXPECT_EQ(quota(), std::nullopt);
  limit("cpuset/other", "100000", "100000");  // of a hierarchy without processors' time
  EXPECT_EQ(quota(), std::nullopt);
  limit("cpu,cpuacct", "-1", "100000");
  limit("cpu,cpuacct/pod/container", "-1", "100000");
  EXPECT_EQ(quota(), std::nullopt);
  limit("cpu,cpuacct/pod", "350000", "100000");
  EXPECT_EQ(quota(), 3.5);
  limit("cpu,cpuacct/pod/container", "50000", "20000");
  EXPECT_EQ(quota(), 2.5);
  limit("cpu,cpuacct/pod", "150000", "100000");
  EXPECT_EQ(quota(), 1.5);
}

TEST_F(CpuQuota, IsFoundWhereAContainerMountsItsOwnGroup) {
  belong("4:cpu,cpuacct:/docker/abc/job\n");
  mount("/docker/abc", "cpu", "cgroup", "cpuacct,cpu");
  limit("cpu", "400000", "100000");
  EXPECT_EQ(quota(), 4.0);
  limit("cpu/job", "200000", "100000");
  EXPECT_EQ(quota(), 2.0);
  // Groups that cannot be seen from here; the mounted one is what limits.
  for (const char* outside : {"4:cpu:/docker/abcd/job\n", "4:cpu:/../job\n"}) {
    belong(outside);
    EXPECT_EQ(quota(), 4.0) << outside;
  }
}

TEST_F(CpuQuota, OfBothVersionsIsTheSmaller) {
  belong("4:cpu,cpuacct:/old\n0::/new\n");
  mount("/", "unified", "cgroup2", "nsdelegate");
  mount("/", "cpu", "cgroup", "cpu,cpuacct");
  limit("cpu/old", "300000", "100000");
  EXPECT_EQ(quota(), 3.0);
  write("unified/new/cpu.max", "250000 100000\n");
  EXPECT_EQ(quota(), 2.5);
  limit("cpu/old", "100000", "100000");
  EXPECT_EQ(quota(), 1.0);
}

}  // namespace
}  // namespace tessera
