// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>

#include <gtest/gtest.h>

#include <tessera/process/launch.hpp>

namespace tessera {
namespace {

std::optional<Launch> detect(const std::map<std::string, std::string>& variables) {
  return detect_launch([&](const char* name) {
    const auto at = variables.find(name);
    return at == variables.end() ? nullptr : at->second.c_str();
  });
}

TEST(Launch, IsReadFromTheLauncherNearestToTheProcess) {
  EXPECT_EQ(detect({}), std::nullopt);
  EXPECT_EQ(detect({{"SLURM_NTASKS", "8"}}), std::nullopt);
  const auto openmpi = detect({{"OMPI_COMM_WORLD_SIZE", "4"},
                               {"OMPI_COMM_WORLD_RANK", "3"},
                               {"SLURM_STEP_NUM_TASKS", "2"},
                               {"SLURM_PROCID", "1"}});
  ASSERT_TRUE(openmpi);
  EXPECT_EQ(openmpi->variable, "OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(openmpi->size, 4);
  EXPECT_EQ(openmpi->rank, 3);
  for (const auto& [size, rank] :
       std::map<std::string, std::string>{{"PMI_SIZE", "PMI_RANK"},
                                          {"FLUX_JOB_SIZE", "FLUX_TASK_RANK"},
                                          {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
                                          {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},
                                          {"MVP_COMM_WORLD_SIZE", "MVP_COMM_WORLD_RANK"},
                                          {"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"},
                                          {"WORLD_SIZE", "RANK"}}) {
    const auto launch = detect({{size, "7"}, {rank, "2"}});
    ASSERT_TRUE(launch) << size;
    EXPECT_EQ(launch->size, 7) << size;
    EXPECT_EQ(launch->rank, 2) << size;
  }
}

TEST(Launch, NeedsSizeAndRank) {
  EXPECT_EQ(detect({{"WORLD_SIZE", "4"}}), std::nullopt);
  EXPECT_EQ(detect({{"RANK", "4"}}), std::nullopt);
  EXPECT_EQ(detect({{"PMI_SIZE", "many"},
                    {"PMI_RANK", "0"},
                    {"FLUX_JOB_SIZE", "2"},
                    {"FLUX_TASK_RANK", "0"}})
                ->variable,
            "FLUX_JOB_SIZE");
}

// Its variables hold the number of ranks on a node, and the rank in the launch.
TEST(Launch, OfPalsHasAtLeastTheRanksOfANode) {
  EXPECT_EQ(detect({{"PALS_LOCAL_SIZE", "4"}, {"PALS_RANKID", "1"}})->size, 4);
  EXPECT_EQ(detect({{"PALS_LOCAL_SIZE", "1"}, {"PALS_RANKID", "6"}})->size, 7);
}

}  // namespace
}  // namespace tessera
