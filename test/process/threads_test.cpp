// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/process/threads.hpp>

#include "expect_error.hpp"

namespace tessera {
namespace {

using Sets = std::vector<std::vector<int>>;
using Cores = std::map<int, std::vector<int>>;

TEST(Threads, OfOneCoreCountOnce) {
  const auto siblings = [](int processor) -> std::string {
    const std::map<int, std::string> cores = {{0, "0,4"}, {4, "0,4"}, {1, "1,5"}, {5, "1,5"}};
    const auto found = cores.find(processor);
    return found == cores.end() ? "" : found->second;
  };
  EXPECT_EQ(cores_of(std::vector{0, 1, 4, 5, 8}, siblings),
            (Cores{{0, {0, 4}}, {1, {1, 5}}, {8, {8}}}));
  EXPECT_EQ(cores_of(std::vector{5}, siblings), (Cores{{1, {5}}})) << "is not the core of 4";
  EXPECT_EQ(cores_of({}, siblings), Cores{});
}

TEST(Threads, AreTheCoresOfARankDividedByTheRanksThatShareThem) {
  EXPECT_EQ(threads_of_rank(0, Sets{{0, 1, 2, 3}}), 4);
  const Sets bound = {{0, 1}, {2, 3, 4}};
  EXPECT_EQ(threads_of_rank(0, bound), 2);
  EXPECT_EQ(threads_of_rank(1, bound), 3);
  const std::vector<int> node = {0, 1, 2, 3, 4, 5, 6};
  EXPECT_EQ(threads_of_rank(2, Sets(3, node)), 2);
  EXPECT_EQ(threads_of_rank(0, Sets(8, node)), 1);
  EXPECT_EQ(threads_of_rank(0, Sets{{0, 1, 2, 3}, {2, 3}, {6}}), 2);
  EXPECT_EQ(threads_of_rank(0, Sets{{}}), 1) << "the system does not report cores";
}

TEST(Threads, ThatShareCoresAreReported) {
  EXPECT_EQ(shared_cores_warning(Sets(8, {0, 1}), 8),
            "8 threads of 8 ranks on this node share 2 cores, so times mean little; "
            "TESSERA_ALLOW_SHARED_CORES=1 hides this line");
  EXPECT_NE(shared_cores_warning(Sets{{0, 1}, {1, 2}}, 4), "");
  EXPECT_EQ(shared_cores_warning(Sets{{0, 1}, {2, 3}}, 4), "");
  EXPECT_EQ(shared_cores_warning(Sets(3), 3), "") << "the system does not report cores";
}

std::optional<AskedNumber> asked(const std::vector<std::string>& arguments,
                                 const std::map<std::string, std::string>& variables) {
  return asked_threads(arguments, [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Threads, AreThoseThatTheUserAsksFor) {
  EXPECT_FALSE(asked({"run"}, {}));
  EXPECT_EQ(asked({}, {{"OMP_NUM_THREADS", "4,2"}})->number, 4);
  const std::map<std::string, std::string> both = {{"OMP_NUM_THREADS", "4"},
                                                   {"KOKKOS_NUM_THREADS", "3"}};
  EXPECT_EQ(asked({}, both)->name, "KOKKOS_NUM_THREADS");
  EXPECT_EQ(asked({"--kokkos-num-threads=2"}, both)->number, 2);
  EXPECT_FALSE(asked({}, {{"OMP_NUM_THREADS", "-1"}}));
  EXPECT_EQ(test::error_of([] {
              asked({}, {{"KOKKOS_NUM_THREADS", "many"}});
            }),
            "KOKKOS_NUM_THREADS = many: must be a positive number");
}

TEST(Threads, AreRejectedIfTooMany) {
  const std::vector<int> two = {2, 3};
  check_threads({"OMP_NUM_THREADS", 2}, two, true);
  check_threads({"OMP_NUM_THREADS", 8}, {}, true);
  check_threads({"OMP_NUM_THREADS", 8}, two, false);
  check_threads({"KOKKOS_NUM_THREADS", 1}, two, false);
  const auto error = [&](const AskedNumber& asked, bool has_threads) {
    return test::error_of([&] { check_threads(asked, two, has_threads); });
  };
  EXPECT_EQ(error({"OMP_NUM_THREADS", 8}, true),
            "OMP_NUM_THREADS = 8: each rank may run on only 2 processors (2-3); ask for at most 2 "
            "threads, or give ranks more (mpirun --map-by slot:PE=8 --bind-to core; srun "
            "--cpus-per-task=8)");
  EXPECT_EQ(error({"KOKKOS_NUM_THREADS", 2}, false),
            "KOKKOS_NUM_THREADS = 2: this Kokkos was built without OpenMP, so each rank runs 1 "
            "thread; build one with OpenMP: scripts/kokkos.sh --backend openmp");
}

TEST(Threads, AreBoundIfNobodyElseMayRunOnTheirCores) {
  const auto none = [](const char*) -> const char* { return nullptr; };
  const Sets own = {{0, 1}, {2, 3}}, shared = {{0, 1}, {1, 2}};
  EXPECT_TRUE(should_bind_threads(none, 0, own, 2));
  EXPECT_TRUE(should_bind_threads(none, 1, own, 2));
  EXPECT_FALSE(should_bind_threads(none, 0, own, 1)) << "one thread may move";
  EXPECT_FALSE(should_bind_threads(none, 0, shared, 2)) << "rank 1 may run on core 1";
  EXPECT_FALSE(should_bind_threads(none, 0, Sets{{0, 1, 2}}, 2)) << "another job may use a core";
  EXPECT_FALSE(should_bind_threads(none, 0, Sets{{}}, 2)) << "unknown cores";
  for (const std::string chosen :
       {"OMP_PROC_BIND", "OMP_PLACES", "KMP_AFFINITY", "GOMP_CPU_AFFINITY"}) {
    const auto users = [&](const char* name) { return name == chosen ? "false" : nullptr; };
    EXPECT_FALSE(should_bind_threads(users, 0, own, 2)) << chosen;
  }
}

}  // namespace
}  // namespace tessera
