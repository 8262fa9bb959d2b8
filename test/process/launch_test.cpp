// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/process/gpu.hpp>
#include <tessera/process/launch.hpp>

#include "expect_error.hpp"

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
  EXPECT_EQ(detect({{"PMI_SIZE", "5"}, {"PMI_RANK", "0"}})->size, 5);
  EXPECT_EQ(detect({{"FLUX_JOB_SIZE", "6"}, {"FLUX_TASK_RANK", "5"}})->rank, 5);
  EXPECT_EQ(detect({{"SLURM_STEP_NUM_TASKS", "7"}, {"SLURM_PROCID", "2"}})->rank, 2);
  EXPECT_EQ(detect({{"MV2_COMM_WORLD_SIZE", "8"}, {"MV2_COMM_WORLD_RANK", "7"}})->rank, 7);
  EXPECT_EQ(detect({{"MVP_COMM_WORLD_SIZE", "8"}, {"MVP_COMM_WORLD_RANK", "7"}})->rank, 7);
  EXPECT_EQ(detect({{"JSM_NAMESPACE_SIZE", "9"}, {"JSM_NAMESPACE_RANK", "3"}})->size, 9);
  EXPECT_EQ(detect({{"WORLD_SIZE", "4"}, {"RANK", "1"}})->size, 4);
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

TEST(Launch, SingletonsUnderALauncherOfSeveralAreAnError) {
  EXPECT_NO_THROW(check_launch({"PMI_SIZE", 1, 0}, 1));
  EXPECT_NO_THROW(check_launch({"PMI_SIZE", 4, 0}, 4));
  EXPECT_NO_THROW(check_launch({"PMI_SIZE", 4, 0}, 2));
  EXPECT_EQ(test::error_of([] {
              check_launch({"PMI_SIZE", 4, 2}, 1);
            }),
            "the launcher started 4 processes (PMI_SIZE), but MPI_COMM_WORLD has 1: start them "
            "with the mpirun, mpiexec or srun of this program's MPI library, which tessera info "
            "names");
}

TEST(Gpu, CountsTheRanksThatShareOne) {
  EXPECT_EQ(ranks_per_gpu(std::vector<std::string>{}), 0);
  EXPECT_EQ(ranks_per_gpu(std::vector<std::string>{"h1 a", "h1 b", "h2 a", "h2 b"}), 1);
  EXPECT_EQ(ranks_per_gpu(std::vector<std::string>{"a", "b", "a", "c", "b", "a"}), 3);
}

}  // namespace
}  // namespace tessera
