// SPDX-License-Identifier: Apache-2.0
// Copies on several ranks must be bitwise equal. A check finds a difference and names the ranks.
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/engine/digest.hpp>
#include <tessera/engine/replicas.hpp>

#include "device_data.hpp"
#include "engine/error_everywhere.hpp"
#include "engine/experiment_models.hpp"
#include "engine/strategy_support.hpp"

namespace tessera {
namespace {

using train_test::error_everywhere;
using train_test::Experiment;
using train_test::for_strategies;
using train_test::primes;
using train_test::trainer_of;

template <class T>
std::uint64_t digest_of(const std::vector<T>& values, Size first = 0,
                        LeftOut left_out = LeftOut::none) {
  const Vector<std::int64_t> sums("sums", 2);
  const Size n = std::ssize(values);
  digest<T>(Vector<const T>(test::to_device(values)), GlobalIndex({first + n}, {{first}, {n}}), 0,
            sums, 1, left_out);
  const std::vector<std::int64_t> host = test::to_host(sums);
  EXPECT_EQ(host[0], 0) << "another position";
  return static_cast<std::uint64_t>(host[1]);
}

template <class T>
class Digest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Digest, Types);

TYPED_TEST(Digest, PartsAddUpToTheWhole) {
  std::vector<TypeParam> values;
  for (int i = 0; i < 100; ++i) values.push_back(static_cast<TypeParam>(std::sin(i)));
  for (const std::ptrdiff_t cut : {0, 1, 37, 100}) {
    const std::vector<TypeParam> head(values.begin(), values.begin() + cut);
    const std::vector<TypeParam> tail(values.begin() + cut, values.end());
    EXPECT_EQ(digest_of(head) + digest_of(tail, cut), digest_of(values));
  }
}

TYPED_TEST(Digest, SeesPlacesAndSingleBits) {
  const std::vector<TypeParam> values = {1, 2, 3, 3};
  const std::uint64_t sum = digest_of(values);
  EXPECT_EQ(digest_of(std::vector<TypeParam>{1, 2, 3, 3}), sum);
  EXPECT_NE(digest_of(std::vector<TypeParam>{2, 1, 3, 3}), sum) << "swapped";
  EXPECT_NE(digest_of(values, 1), sum) << "moved";
  EXPECT_NE(digest_of(std::vector<TypeParam>{1, std::nextafter(TypeParam(2), TypeParam(3)), 3, 3}),
            sum);
  EXPECT_NE(digest_of(std::vector<TypeParam>{TypeParam(0)}),
            digest_of(std::vector<TypeParam>{TypeParam(-0.0)}))
      << "the sign of zero is a bit";
  EXPECT_EQ(digest_of(std::vector<TypeParam>{}), 0u);
}

TYPED_TEST(Digest, ColumnsAddUpToTheWholeMatrix) {
  const Size rows = 5, columns = 7;
  std::vector<TypeParam> whole;
  for (Size i = 0; i < rows * columns; ++i) whole.push_back(static_cast<TypeParam>(std::sin(i)));
  const Vector<std::int64_t> sums("sums", 2);
  for (const Range& own : {Range{0, 3}, Range{3, 4}}) {
    std::vector<TypeParam> piece;
    for (Size i = 0; i < rows * own.count; ++i)
      piece.push_back(whole[i / own.count * columns + own.begin + i % own.count]);
    const GlobalIndex place({rows, columns}, {{0, own.begin}, {rows, own.count}});
    digest<TypeParam>(Vector<const TypeParam>(test::to_device(piece)), place, 0, sums,
                      own.begin > 0 ? 1 : 0);
  }
  const std::vector<std::int64_t> parts = test::to_host(sums);
  EXPECT_EQ(static_cast<std::uint64_t>(parts[0]) + static_cast<std::uint64_t>(parts[1]),
            digest_of(whole));
}

TYPED_TEST(Digest, ZerosCanBeLeftOut) {
  const std::vector<TypeParam> values{0, 2, 0}, nonzero{2};
  EXPECT_NE(digest_of(values), digest_of(nonzero, 1));
  EXPECT_EQ(digest_of(values, 0, LeftOut::zeros), digest_of(nonzero, 1));
}

/// Adds 1 to the first element that a rank keeps of a tensor, until the end of the scope.
class Drift {
 public:
  explicit Drift(const LocalTensor<float>& tensor) : tensor_(tensor) {
    if (!happens()) return;
    Kokkos::deep_copy(before_, Kokkos::subview(tensor_.values, 0));
    Kokkos::deep_copy(Kokkos::subview(tensor_.values, 0), before_ + 1);
  }
  ~Drift() {
    if (happens()) Kokkos::deep_copy(Kokkos::subview(tensor_.values, 0), before_);
  }
  Drift(const Drift&) = delete;
  Drift& operator=(const Drift&) = delete;
  /// Returns false if the rank keeps no element of the tensor.
  bool happens() const { return tensor_.kept.count > 0; }

 private:
  LocalTensor<float> tensor_;
  float before_ = 0;
};

/// Returns true if `mine` is true on any rank.
bool any(const Communicator& world, bool mine) {
  const Kokkos::View<std::int32_t[1], Kokkos::HostSpace> flag("flag");
  flag(0) = mine;
  world.all_reduce(flag, ReduceOp::max);
  return flag(0) > 0;
}

/// Returns true if another rank holds the same elements of a tensor.
bool has_copies(const Plan& plan, const Slot& tensor) {
  const MeshShape& mesh = plan.input.mesh;
  AxisSet along = replicating_axes(mesh) | mesh.axes_named({"model"});
  if (tensor.held == Held::share) along = along - shard_axes(plan.input.strategy, mesh);
  if (tensor.held == Held::owned) along = along - moment_axes(plan.input, mesh);
  AxisSet repeats;
  for (const Cut& cut : tensor.cuts)
    if (cut.repeats > 1) repeats = mesh.repeats();
  return mesh.group_size((along - axes_of(tensor.cuts)) | repeats) > 1;
}

/// Lets one rank after another drift in each tensor. Expects that a check finds each drift of a
/// tensor with copies, and nothing else.
void expect_drifts_found(const Trainer<float>& trainer, const Plan& plan) {
  const Communicator& world = trainer.mesh().world();
  const ReplicaCheck<float> check(plan, trainer.mesh(), trainer.engine());
  for (const TensorRole role : {TensorRole::parameter, TensorRole::moment})
    for (const TensorPart& part : tensor_parts(plan, trainer.mesh().rank(), role)) {
      const LocalTensor<float> tensor = local_tensor(trainer.engine(), part);
      const std::string& path = tensor.slot.path;
      if (path.find("layer1/k") == 0 || path.find("layer3") == 0)
        continue;  // same placement as other layers
      for (const int drifting : {0, world.size() - 1}) {
        std::optional<Drift> drift;
        if (world.rank() == drifting) drift.emplace(tensor);
        if (any(world, drift && drift->happens()) && has_copies(plan, tensor.slot)) {
          const std::string message = error_everywhere([&] { check(7); }, ExitCode::wrong_result);
          EXPECT_EQ(message.find("replicas differ after step 7: " + path + " has checksum "), 0u)
              << message << ", rank " << drifting << " drifted in " << path;
        } else {
          EXPECT_NO_THROW(check(7)) << path;
        }
      }
    }
}

TEST(Replicas, EveryDriftIsFoundAndNothingElse) {
  Experiment base = primes(13);
  base.training.num_epochs = 1;
  base.training.check_replicas_every = 1;
  for_strategies(base, [&](const Experiment& setup, const std::string& what) {
    SCOPED_TRACE(what);
    Trainer<float> trainer = trainer_of<float>(setup);
    EXPECT_EQ(plan_violation(trainer.fit(setup.data)), "");  // no false alarm
    expect_drifts_found(trainer, trainer.plan(setup.data.samples));
  });
}

TEST(Replicas, RanksOfAKeyHeadAreReplicas) {
  const Size ranks = Communicator::world().size(), data = ranks % 2 == 0 ? 2 : 1;
  Experiment base = train_test::llama();
  base.model.transformer.kv_heads = 1;
  base.training.num_epochs = 1;
  base.training.check_replicas_every = 1;
  for (const std::string_view strategy : {"data", "fsdp"}) {
    SCOPED_TRACE(strategy);
    const Experiment setup =
        train_test::on_mesh(base, {{"model", ranks / data}, {"data", data}}, strategy);
    Trainer<float> trainer = trainer_of<float>(setup);
    EXPECT_EQ(plan_violation(trainer.fit(setup.data)), "");
    expect_drifts_found(trainer, trainer.plan(setup.data.samples));
  }
}

/// Returns the error of a training in which a rank drifts at the end of the first of three epochs,
/// after three steps.
std::string error_of_drift(Experiment setup, const std::string& path, int drifting) {
  setup.training.num_epochs = 3;
  Trainer<float> trainer = trainer_of<float>(setup);
  std::optional<Drift> drift;
  return error_everywhere(
      [&] {
        trainer.fit(setup.data, [&](Size epoch, double) {
          ASSERT_EQ(epoch, 1) << "the next epoch must not end";
          const int rank = trainer.mesh().world().rank();
          for (const TensorPart& part :
               tensor_parts(trainer.plan(setup.data.samples), rank, TensorRole::parameter))
            if (part.slot.path == path && rank == drifting)
              drift.emplace(local_tensor(trainer.engine(), part));
        });
      },
      ExitCode::wrong_result);
}

bool names(const std::string& message, const std::string& ranks) {
  return (message + ",").find(" on " + ranks + ",") != std::string::npos;
}

TEST(Replicas, DriftEndsTheRunAtTheNextCheckAndNamesTheRanks) {
  const Size ranks = Communicator::world().size();
  if (ranks == 1) GTEST_SKIP() << "no replicas";
  Experiment base = primes(13);
  for (const Size every : {1, 2, 5}) {
    base.training.check_replicas_every = every;
    const std::string message =
        error_of_drift(train_test::on_mesh(base, {{"data", ranks}}, "data"), "layer2/kernel", 1);
    const Size step = every == 1 ? 4 : every == 2 ? 4 : 5;
    EXPECT_EQ(
        message.find("replicas differ after step " + std::to_string(step) + ": layer2/kernel"), 0u)
        << message;
    EXPECT_TRUE(names(message, "rank 1")) << message;
    const std::string others = ranks == 2   ? "rank 0"
                               : ranks == 3 ? "ranks 0,2"
                                            : "ranks 0,2-" + std::to_string(ranks - 1);
    EXPECT_TRUE(names(message, others)) << message;
  }
}

/// Trains with an infinity in the second batch, in the rows of rank `where` and of the ranks that
/// share them.
void expect_stop_at_step_2(const Experiment& setup, int where) {
  train_test::Samples<float> all = train_test::samples_of<float>(setup);
  Trainer<float> trainer = trainer_of<float>(setup);
  const Plan plan = trainer.plan(setup.data.samples);
  if (plan.batch_samples(where).count == 0) return;
  if (plan.batch_samples(trainer.mesh().rank()) == plan.batch_samples(where))
    Kokkos::deep_copy(
        Kokkos::subview(all.y, setup.training.batch_size + plan.batch_samples(where).begin, 0),
        std::numeric_limits<float>::infinity());
  EXPECT_EQ(error_everywhere([&] { trainer.fit(all.x, all.y); }, ExitCode::wrong_result),
            "training diverged: the gradient of step 2 is not finite");
  for (const double value : train_test::to_host(trainer.gather()))
    ASSERT_TRUE(std::isfinite(value)) << "the step must not be made";
}

TEST(CheckFinite, InfinityOnOneRankStopsAllBeforeTheUpdate) {
  for (const bool overlap : {false, true}) {
    Experiment base = primes(13);
    base.training.check_finite = true;
    base.training.microbatches = overlap ? 3 : 1;
    base.training.distributed.overlap = overlap;
    for_strategies(base, [&](const Experiment& setup, const std::string& what) {
      for (const int where : {0, Communicator::world().size() - 1}) {
        SCOPED_TRACE(testing::Message() << what << ", overlap " << overlap << ", rank " << where);
        expect_stop_at_step_2(setup, where);
      }
    });
  }
}

TEST(CheckFinite, WithoutTheCheckTheEpochReportsIt) {
  const Experiment setup = primes(13);
  train_test::Samples<float> all = train_test::samples_of<float>(setup);
  Kokkos::deep_copy(Kokkos::subview(all.y, 13, 0), std::numeric_limits<float>::infinity());
  Trainer<float> trainer = trainer_of<float>(setup);
  EXPECT_NE(error_everywhere([&] { trainer.fit(all.x, all.y); }, ExitCode::wrong_result)
                .find("the loss of epoch 1"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
