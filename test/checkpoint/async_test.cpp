// SPDX-License-Identifier: Apache-2.0
// Checkpoints that threads write while training continues.
#include <filesystem>
#include <future>
#include <string>

#include <gtest/gtest.h>

#include "checkpoint/resume_support.hpp"
#include "engine/error_everywhere.hpp"

namespace tessera {
namespace {

using namespace checkpoint_test;
using train_test::error_everywhere;
using train_test::primes;

CheckpointConfig in_background(const SharedDirectory& directory) {
  return {.directory = directory.path(), .every_steps = 1, .keep = 0, .async = true};
}

void expect_nothing_unfinished(const SharedDirectory& directory) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory.path()))
    EXPECT_NE(entry.path().extension(), ".unfinished") << entry.path();
}

// The thread of the first save waits for two more steps, and the step before them for the thread.
TEST(AsyncSave, StepsAreMadeWhileAThreadWrites) {
  const SharedDirectory directory;
  std::promise<void> wrote_a_tensor, made_two_steps;
  CheckpointConfig config = in_background(directory);
  config.every_steps = 2;
  config.at_end = false;
  int tensors = 0, steps = 0;
  const auto wait = [&](SavePoint point) {
    if (point != SavePoint::tensor_written || ++tensors > 1) return;
    wrote_a_tensor.set_value();
    made_two_steps.get_future().wait();
  };
  const auto count = [&] {
    ++steps;
    if (steps == 3) wrote_a_tensor.get_future().wait();
    if (steps == 4) made_two_steps.set_value();
    return false;
  };
  const End end =
      run<float>(primes(), {.config = config, .wants_to_stop = count, .observer = wait});
  EXPECT_EQ(end.metrics.checkpoints, 3);
  EXPECT_GT(end.metrics.checkpoint_hidden_seconds, 0);
}

/// Makes the writing of one save fail on the last rank.
SaveObserver failure_of(Size save, SavePoint where, Size& begun) {
  const Communicator world = Communicator::world();
  const bool fails = world.rank() == world.size() - 1;
  return [=, &begun](SavePoint point) {
    if (point == SavePoint::begun) ++begun;
    if (fails && point == where && begun == save)
      throw Error(ExitCode::usage, "disk: cannot be written: No space left on device");
  };
}

TEST(FailedSave, OfOneRankStopsTheTrainingOnAll) {
  for (const bool async : {false, true}) {
    SCOPED_TRACE(async);
    const SharedDirectory directory;
    Size begun = 0;
    CheckpointConfig config = in_background(directory);
    config.async = async;
    EXPECT_EQ(error_everywhere([&] {
                run<float>(primes(), {.config = config,
                                      .observer = failure_of(2, SavePoint::tensor_written, begun)});
              }),
              "disk: cannot be written: No space left on device");
    EXPECT_EQ(begun, 2);
    EXPECT_EQ(newest_in(directory.path()), file_of(directory, 1));
    EXPECT_GT(verify_checkpoint(file_of(directory, 1)), 0);
    expect_nothing_unfinished(directory);
  }
}

TEST(AsyncSave, WithContinueAFailedWriteStopsNothing) {
  const End whole = run<float>(primes(), {});
  for (const Size failing : {2, 6}) {
    SCOPED_TRACE(failing);
    const SharedDirectory directory;
    Size begun = 0;
    CheckpointConfig config = in_background(directory);
    config.on_failure = FailedSave::go_on;
    const End end = run<float>(
        primes(),
        {.config = config, .observer = failure_of(failing, SavePoint::tensor_written, begun)});
    EXPECT_EQ(end.metrics.failed_checkpoints, 1);
    EXPECT_EQ(end.metrics.checkpoints, end.metrics.steps - 1);
    EXPECT_FALSE(std::filesystem::exists(file_of(directory, failing)));
    EXPECT_EQ(end.metrics.last_checkpoint, file_of(directory, failing == 6 ? 5 : 6));
    // The caller learns that the last state was not saved.
    EXPECT_EQ(end.metrics.end_not_saved,
              failing == 6 ? "disk: cannot be written: No space left on device" : "");
    expect_same_end(end, whole);
    expect_same_end(run<float>(primes(), {}, file_of(directory, 3)), whole);
    expect_nothing_unfinished(directory);
  }
}

}  // namespace
}  // namespace tessera
