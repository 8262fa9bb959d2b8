// SPDX-License-Identifier: Apache-2.0
// Every public member of a trainer, in every state of the trainer.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/checkpoint_support.hpp"
#include "engine/error_everywhere.hpp"
#include "engine/serial_training.hpp"

namespace tessera {
namespace {

using train_test::error_everywhere;
using train_test::Experiment;
using train_test::Samples;
using train_test::trainer_of;

// A model whose trainer has all members; three batches an epoch.
const Experiment setup = train_test::small_vae();

struct Member {
  std::string name;
  bool needs_training;
  std::function<void(Trainer<float>&)> call;
};

/// Returns all members, those last that change whether something has been trained.
std::vector<Member> members() {
  const Samples<float> all = train_test::samples_of<float>(setup);
  return {
      {"mesh", false, [](auto& trainer) { trainer.mesh(); }},
      {"topology", false, [](auto& trainer) { trainer.topology(); }},
      {"model", false, [](auto& trainer) { trainer.model(); }},
      {"plan", false, [](auto& trainer) { trainer.plan(setup.data.samples); }},
      {"samples_of", false, [=](auto& trainer) { trainer.samples_of(all.x); }},
      {"after_steps", false, [](auto& trainer) { trainer.after_steps(1, [] {}); }},
      {"engine", true, [](auto& trainer) { trainer.engine(); }},
      {"gather", true, [](auto& trainer) { trainer.gather(); }},
      {"gather gradients", true, [](auto& trainer) { trainer.gather(TensorRole::gradient); }},
      {"evaluate", true, [=](auto& trainer) { trainer.evaluate(all.x, all.y); }},
      {"predict", true, [=](auto& trainer) { trainer.predict(all.x); }},
      {"sample", true, [](auto& trainer) { trainer.sample(5); }},
      {"reset", false, [](auto& trainer) { trainer.reset(); }},
      {"fit", false, [](auto& trainer) { trainer.fit(setup.data); }},
      {"fit of arrays", false, [=](auto& trainer) { trainer.fit(all.x, all.y); }},
  };
}

DataConfig bad_data() {
  DataConfig data = setup.data;
  data.samples = -1;
  return data;
}

/// Makes fit() fail after one of the three batches of the first epoch.
void fail_within_an_epoch(Trainer<float>& trainer) {
  trainer.after_steps(1, [] { throw Error(ExitCode::wrong_result, "stopped"); });
  EXPECT_EQ(error_everywhere([&] { trainer.fit(setup.data); }, ExitCode::wrong_result), "stopped");
  trainer.after_steps(1, [] {});
}

TEST(Members, ThatNeedTrainingSaySo) {
  using State = std::function<void(Trainer<float>&)>;
  const std::vector<State> states{
      [](auto&) {},
      [](auto& trainer) {
        trainer.fit(setup.data);
        trainer.reset();
      },
      [](auto& trainer) { error_everywhere([&] { trainer.fit(bad_data()); }); },
      [](auto& trainer) {
        trainer.resume("no such file");
        error_everywhere([&] { trainer.fit(setup.data); });
      },
  };
  for (const State& bring_about : states) {
    Trainer<float> trainer = trainer_of<float>(setup);
    bring_about(trainer);
    for (const Member& member : members()) {
      SCOPED_TRACE(member.name);
      if (member.needs_training)
        EXPECT_EQ(error_everywhere([&] { member.call(trainer); }),
                  "trainer: nothing has been trained yet; call fit()");
      else
        EXPECT_NO_THROW(member.call(trainer));
    }
  }
}

TEST(Members, WorkAfterAFailedFit) {
  Trainer<float> within_an_epoch = trainer_of<float>(setup), bad = trainer_of<float>(setup);
  fail_within_an_epoch(within_an_epoch);
  bad.fit(setup.data);
  error_everywhere([&] { bad.fit(bad_data()); });
  for (const Member& member : members()) {
    SCOPED_TRACE(member.name);
    EXPECT_NO_THROW(member.call(within_an_epoch));
    EXPECT_NO_THROW(member.call(bad));
  }
}

// Nothing of the epoch that was left is in later results.
TEST(Members, StartAnEpochAfterAFailedFit) {
  const Samples<float> all = train_test::samples_of<float>(setup);
  Trainer<float> trainer = trainer_of<float>(setup);
  fail_within_an_epoch(trainer);
  const double loss = trainer.evaluate(all.x, all.y);
  EXPECT_EQ(trainer.evaluate(all.x, all.y), loss);
  const TrainingMetrics metrics = trainer.fit(setup.data);
  EXPECT_EQ(metrics.steps, 3 * setup.training.num_epochs);
  EXPECT_LT(metrics.initial_loss(), 1.5 * loss);
  EXPECT_EQ(plan_violation(metrics), "");
}

/// Changes the first number of the last parameter in a checkpoint. Collective.
void damage(const std::string& path) {
  const Communicator world = Communicator::world();
  if (world.rank() == 0) {
    const float changed = 3;
    checkpoint_test::change_tensor(path, SafetensorsFile(path).arrays().rbegin()->first, 0,
                                   &changed, sizeof(changed));
  }
  world.barrier();
}

// A file that cannot be read to its end leaves nothing of it in the trainer.
TEST(Members, HaveNothingOfADamagedCheckpoint) {
  const checkpoint_test::SharedDirectory saves;
  ModelConfig model = setup.model;
  model.dtype = DType::float32;
  Trainer<float> saving(model, setup.training, {}, {.config = {.directory = saves.path()}});
  const std::string path = saving.fit(setup.data).last_checkpoint;
  damage(path);
  Trainer<float> trainer = trainer_of<float>(setup);
  trainer.resume(path);
  EXPECT_NE(error_everywhere([&] { trainer.fit(setup.data); }).find("is damaged"),
            std::string::npos);
  EXPECT_EQ(error_everywhere([&] { trainer.gather(); }),
            "trainer: nothing has been trained yet; call fit()");
}

TEST(Members, CannotResumeWhatHasBeenTrained) {
  Trainer<float> trainer = trainer_of<float>(setup);
  fail_within_an_epoch(trainer);
  EXPECT_NE(error_everywhere([&] { trainer.resume("file"); }).find("call reset() first"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
