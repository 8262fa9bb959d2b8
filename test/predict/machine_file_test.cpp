// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tessera/predict/machine_file.hpp>

#include "expect_error.hpp"
#include "temporary_directory.hpp"

namespace tessera {
namespace {

using test::TemporaryDirectory;

const std::string small_machine = R"([machine]
device = "gpu"
emulated_products = ["float16"]
memory_bytes = 1_000_000
memory_bytes_per_second = 2e9
kernel_seconds = 1e-6
overlap = 0.5
product_overlap = 0.25
half_rate_side = 20.0
block_byte_seconds = 2e-11  # in files of earlier versions
function_seconds = 1e-9
[machine.flops_per_second]
float32 = 1e10
[[cache]]
bytes = 1000
bytes_per_second = 9e9
[[cache]]
bytes = 50_000
bytes_per_second = 4e9
[[network]]
name = "node"
ranks = 2
latency_seconds = 1e-6
bytes_per_second = 1e9
[[network]]
name = "cluster"
ranks = 12
latency_seconds = 1e-5
rendezvous_seconds = 3e-5
eager_bytes = 65_536  # in files of earlier versions
bytes_per_second = 1e8
)";

TEST(MachineFile, IsReadAndWritten) {
  const TemporaryDirectory folder;
  const Machine machine = load_machine(folder.write("small.toml", small_machine));
  EXPECT_EQ(machine.name, "small");
  EXPECT_EQ(machine.device, Device::gpu);
  EXPECT_TRUE(machine.traits().multiplies(DType::bfloat16));
  EXPECT_FALSE(machine.traits().multiplies(DType::float16));
  EXPECT_EQ(machine.memory_bytes, 1000000);
  EXPECT_EQ(machine.flops_per_second.at("float32"), 1e10);
  EXPECT_EQ(machine.ranks(), 12);
  EXPECT_EQ(machine.network[0].latency_seconds, 1e-6);
  const std::string text = machine_as_toml(machine);
  const Machine again = load_machine(folder.write("again.toml", text));
  EXPECT_EQ(again.emulated_products, std::vector<std::string>{"float16"});
  EXPECT_NEAR(machine.slowdown(20), 2, 0.02);  // half_rate_side
  EXPECT_EQ(again.side_efficiency, machine.side_efficiency);
  ASSERT_EQ(again.caches.size(), 2u);
  EXPECT_EQ(again.caches[1].bytes, 50'000);
  EXPECT_EQ(again.network[1].rendezvous_seconds, 3e-5);
  EXPECT_EQ(again.network[0].rendezvous_seconds, 0);
  EXPECT_EQ(machine_as_toml(again), text);
}

TEST(MachineFile, HasTablesByTypeCallAndSide) {
  const TemporaryDirectory folder;
  std::string text = small_machine;
  text.erase(text.find("overlap = 0.5\n"), 14);
  text.erase(text.find("half_rate_side = 20.0\n"), 22);
  text += R"([machine.peak_flops_per_second]
float32 = 2e10
[machine.overlap]
messages = 1.0
gradients = 0.25
[machine.side_efficiency]
64 = 0.25
1024 = 0.9
[software]
attention = "scores_in_memory"
stage_messages = "scattered"
block_recomputation = "whole"
)";
  const Machine machine = load_machine(folder.write("small.toml", text));
  EXPECT_EQ(machine.peak_flops_per_second.at("float32"), 2e10);
  EXPECT_EQ(machine.hidden(Operation::reduce_scatter), 0.25);
  EXPECT_EQ(machine.side_efficiency.at(1024), 0.9);
  EXPECT_EQ(machine.software.block_recomputation, BlockRecomputation::whole);
  const std::string written = machine_as_toml(machine);
  const Machine again = load_machine(folder.write("again.toml", written));
  EXPECT_EQ(again.overlaps, machine.overlaps);
  EXPECT_EQ(again.side_efficiency, machine.side_efficiency);
  EXPECT_EQ(again.software, machine.software);
  EXPECT_EQ(machine_as_toml(again), written);
}

TEST(MachineFile, DescribesRanksOfOtherThreads) {
  const TemporaryDirectory folder;
  const auto with = [&](const std::string& file, const std::string& keys, const std::string& rate) {
    std::string text = small_machine;
    text.insert(text.find("[machine]\n") + 10, keys);
    text.replace(text.find("1e10"), 4, rate);
    return folder.write(file, text);
  };
  with("two.toml", "threads = 2\n", "2e10");
  with("four.toml", "threads = 4\nthread_files = [\"two.toml\"]\n", "4e10");
  const Machine machine = load_machine(
      with("one.toml", "threads = 1\nthread_files = [\"two.toml\", \"four.toml\"]\n", "1e10"));
  EXPECT_EQ(&machine.of_threads(0), &machine);
  EXPECT_EQ(&machine.of_threads(1), &machine);
  EXPECT_EQ(machine.of_threads(2).flops_per_second.at("float32"), 2e10);
  EXPECT_EQ(machine.of_threads(4).name, "four");
  EXPECT_NE(test::error_of([&] {
              (void)machine.of_threads(3);
            }).find("describes ranks of 1, 2, 4 threads"),
            std::string::npos);
  EXPECT_NE(
      test::error_of([&] {
        load_machine(with("again.toml", "threads = 2\nthread_files = [\"two.toml\"]\n", "1e10"));
      }).find("needs another machine.threads"),
      std::string::npos);
  EXPECT_NE(test::error_of([&] {
              (void)load_machine(folder.write("old.toml", small_machine)).of_threads(2);
            }).find("an unknown number of threads"),
            std::string::npos);
}

TEST(MachineFile, ShippedFilesAreRead) {
  for (const char* name : {"cpu_cluster", "gpu_cluster"}) {
    const Machine machine = load_machine(fmt::format("{}/machines/{}.toml", TESSERA_INPUTS, name));
    EXPECT_EQ(machine.name, name);
    EXPECT_GT(machine.ranks(), 1000);
  }
}

TEST(MachineFile, RejectsInvalidKeysAndValues) {
  const TemporaryDirectory folder;
  const auto rejection = [&](const std::string& from, const std::string& to) {
    std::string text = small_machine;
    text.replace(text.find(from), from.size(), to);
    return test::error_of([&] { load_machine(folder.write("small.toml", text)); });
  };
  struct Rejected {
    std::string from, to, error;
  };
  for (const auto& [from, to, error] :
       {Rejected{"\noverlap", "\noverlaps",
                 "machine.overlaps = 0.5: is not a known key; the key must be one of name, device, "
                 "threads, thread_files, emulated_products, memory_bytes, memory_bytes_per_second, "
                 "kernel_seconds, "
                 "function_seconds, product_overlap, overlap; "
                 "did you mean overlap?"},
        {"device = \"gpu\"\n", "", "machine.device, which is \"cpu\" or \"gpu\", is missing"},
        {"\"gpu\"", "\"gpus\"",
         "machine.device = \"gpus\": must be one of cpu, gpu; did you mean gpu?"},
        {"[\"float16\"]", "[\"float32\"]",
         "machine.emulated_products = \"float32\": the type must be one of bfloat16, float16; "
         "did you mean float16?"},
        {"bytes = 50_000", "bytes = 1000",
         "cache.bytes = 1000: must be more than the 1000 bytes of the cache before"},
        {"bytes = 50_000", "size = 50_000",
         "cache.size = 50000: is not a known key; the key must be one of bytes, bytes_per_second"},
        {"0.5", "1.5", "machine.overlap = 1.5: must be from 0 to 1"},
        {"2e9", "0.0", "machine.memory_bytes_per_second = 0.0: must be positive and finite"},
        {"float32", "float31",
         "machine.flops_per_second.float31 = 10000000000.0: the type must be one of float32, "
         "float64, bfloat16, float16, tf32; did you mean float32?"},
        {"ranks = 12", "ranks = 3",
         "network.ranks = 3: must be a multiple of the 2 ranks of the inner level"},
        {"[[cache]]", "[machine.side_efficiency]\nwide = 0.5\n[[cache]]",
         "machine.side_efficiency.wide = 0.5: the side must be a positive integer"},
        {"[[cache]]", "[machine.side_efficiency]\n64 = 0.5\n[[cache]]",
         "machine.half_rate_side = 20.0: must be 0 with [machine.side_efficiency]"},
        {"overlap = 0.5\n", "overlap = {sends = 0.5}\n",
         "machine.overlap.sends = 0.5: the call must be one of messages, gradients, gathers"},
        {"[[cache]]", "[software]\nattention = \"flash\"\n[[cache]]",
         "software.attention = \"flash\": must be one of fused, scores_in_memory, "
         "scores_and_dropout"},
        {"ranks = 2\n", "ranks = \"two\"\n", "network.ranks = \"two\": must be an integer"},
        {"memory_bytes = 1_000_000", "", "machine.memory_bytes is missing"},
        {"[[network]]\nname = \"node\"", "[other]\nname = \"node\"", "other."}})
    EXPECT_NE(rejection(from, to).find(error), std::string::npos) << rejection(from, to);
}

}  // namespace
}  // namespace tessera
