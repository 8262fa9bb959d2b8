// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <map>
#include <sched.h>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <tessera/process/host_info.hpp>
#include <tessera/process/provenance.hpp>
#include <tessera/process/runtime.hpp>

namespace tessera {
namespace {

TEST(Provenance, EnvironmentHoldsListedNamesOnly) {
  const char* const environment[] = {"HOME=/root",
                                     "SECRET_TOKEN=x",
                                     "OMP_NUM_THREADS=2",
                                     "OPENBLAS_CORETYPE=Haswell",
                                     "KOKKOS_NUM_THREADS=1",
                                     "CUDA_VISIBLE_DEVICES=0,1",
                                     "CUDA_VISIBLE_DEVICES_EXTRA=no",
                                     "OMPI_MCA_btl=self,vader",
                                     "OMPI_MCA_orte_precondition_transports=key",
                                     "SLURM_NTASKS=4",
                                     "SLURM_JOB_USER=me",
                                     "MKL_NUM_THREADS=a=b",
                                     "no equals sign",
                                     nullptr};
  const std::map<std::string, std::string> expected = {
      {"OMP_NUM_THREADS", "2"},       {"OPENBLAS_CORETYPE", "Haswell"},
      {"KOKKOS_NUM_THREADS", "1"},    {"CUDA_VISIBLE_DEVICES", "0,1"},
      {"OMPI_MCA_btl", "self,vader"}, {"SLURM_NTASKS", "4"},
      {"MKL_NUM_THREADS", "a=b"}};
  EXPECT_EQ(allowed_environment(environment), expected);
  EXPECT_TRUE(allowed_environment(nullptr).empty());
}

TEST(Provenance, NamesTheSchedulersJob) {
  EXPECT_EQ(scheduler_job([](const char*) -> const char* { return nullptr; }), std::nullopt);
  EXPECT_EQ(scheduler_job([](const char* name) {
              return std::string(name) == "PBS_JOBID" ? "17.host" : nullptr;
            }),
            "PBS_JOBID=17.host");
}

TEST(Provenance, TimeIsIso8601InUtc) {
  std::string shape = utc_time();
  EXPECT_TRUE(shape.starts_with("20")) << shape;
  for (char& c : shape)
    if (c >= '0' && c <= '9') c = '0';
  EXPECT_EQ(shape, "0000-00-00T00:00:00Z");
}

/// Collects it in a program with the argument "\xff" and the variable OMP_X=\xfe.
nlohmann::json collected() {
  char program[] = "tessera", argument[] = "\xff";
  std::vector<char*> pointers = {program, argument, nullptr};
  int argc = 2;
  char** argv = pointers.data();
  setenv("OMP_X", "\xfe", 1);
  const Runtime runtime(argc, argv);
  const nlohmann::json provenance =
      collect_provenance(runtime, {{"message_backend", "mpi (asked for)"}});
  unsetenv("OMP_X");
  return provenance;
}

TEST(Provenance, JsonHasNullForUnknownValuesAndReplacesInvalidBytes) {
  const nlohmann::json json = collected();
#ifndef KOKKOS_ENABLE_CUDA
  EXPECT_TRUE(json["cuda_version"].is_null());
  EXPECT_TRUE(json["rank"]["gpu"].is_null());
#endif
  EXPECT_TRUE(json["git_dirty"].is_boolean());
  EXPECT_EQ(json["arguments"][1], "\xef\xbf\xbd");
  EXPECT_EQ(json["environment"]["OMP_X"], "\xef\xbf\xbd");
  EXPECT_NO_THROW(static_cast<void>(json.dump()));
  EXPECT_EQ(json["message_backend"], "mpi (asked for)");
}

TEST(Provenance, TextHasAlignedValuesUnderTheirKeys) {
  EXPECT_EQ(provenance_text({{"mpi", {{"library", "Open MPI"}}},
                             {"gpu", nullptr},
                             {"git_dirty", true},
                             {"arguments", {"tessera", "a\nb"}}}),
            "arguments:   tessera a b\n"
            "git_dirty:   true\n"
            "gpu:         none\n"
            "mpi.library: Open MPI\n");
}

TEST(HostInfo, TellsTheProcessorsOfThisThread) {
  EXPECT_FALSE(host_name().empty());
  EXPECT_FALSE(cpu_model().empty());
  const std::vector<int> processors = cpu_set();
  ASSERT_FALSE(processors.empty());
  EXPECT_NE(std::find(processors.begin(), processors.end(), sched_getcpu()), processors.end());
}

}  // namespace
}  // namespace tessera
