// SPDX-License-Identifier: Apache-2.0
// The space of a checkpoint is reserved before ranks write tensors.
#include <filesystem>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "checkpoint/checkpoint_support.hpp"
#include "engine/error_everywhere.hpp"

namespace tessera {
namespace {

using namespace checkpoint_test;

constexpr Size mebibyte = 1 << 20;

/// Saves a checkpoint of 12 MiB: a piece and more for each rank.
void save(const std::string& directory, bool async, const SaveObserver& observer) {
  const Communicator world = Communicator::world();
  train_test::Experiment setup;
  setup.model.mlp.widths = {1024, 1024};
  setup.training.optimizer.kind = OptimizerKind::adam;
  const Mesh mesh(world, MeshShape({{"data", world.size()}}));
  const Engine<float> engine(plan_on(setup, mesh.shape()), mesh, StepOptions::of(setup.training));
  set_elements(engine, mesh.rank());
  CheckpointStore store({.directory = directory, .async = async}, world, observer);
  store.save(engine, {.step = 1, .config = "{}", .provenance = "{}"});
  store.finish();
}

/// Returns the file that is being written, or "".
std::string unfinished_in(const SharedDirectory& directory) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory.path()))
    if (entry.path().string().ends_with(unfinished)) return entry.path();
  return "";
}

class CheckpointSpace : public testing::TestWithParam<bool> {};

TEST_P(CheckpointSpace, IsReservedBeforeTensorsAreWritten) {
  const SharedDirectory directory;
  int looked = 0;
  save(directory.path(), GetParam(), [&](SavePoint point) {
    if (point != SavePoint::created) return;
    ++looked;
    struct stat facts {};
    ASSERT_EQ(stat(unfinished_in(directory).c_str(), &facts), 0);
    EXPECT_GT(facts.st_size, 12 * mebibyte);
    EXPECT_GE(512 * facts.st_blocks, facts.st_size);
  });
  EXPECT_EQ(looked, 1);
  EXPECT_GT(verify_checkpoint(file_of(directory.path(), 1)), 12 * mebibyte);
}

/// Prevents this process from opening files.
class NoFurtherFiles {
 public:
  NoFurtherFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{0, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoFurtherFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoFurtherFiles(const NoFurtherFiles&) = delete;
  NoFurtherFiles& operator=(const NoFurtherFiles&) = delete;

 private:
  rlimit before_{};
};

// If the last rank cannot open the file, no rank leaves one.
TEST_P(CheckpointSpace, AFailureOfOneRankEndsTheSaveOnAll) {
  const Communicator world = Communicator::world();
  if (world.size() == 1) GTEST_SKIP() << "needs 2 ranks";
  const SharedDirectory directory;
  {
    std::optional<NoFurtherFiles> limit;
    const auto no_more = [&](SavePoint point) {
      if (point == SavePoint::begun && world.rank() == world.size() - 1) limit.emplace();
    };
    EXPECT_TRUE(train_test::error_everywhere([&] {
                  save(directory.path(), GetParam(), no_more);
                }).ends_with(".unfinished: cannot be opened: Too many open files"));
  }
  EXPECT_EQ(unfinished_in(directory), "");
}

INSTANTIATE_TEST_SUITE_P(Way, CheckpointSpace, testing::Bool(),
                         [](const auto& test) { return test.param ? "async" : "sync"; });

}  // namespace
}  // namespace tessera
