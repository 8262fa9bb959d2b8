// SPDX-License-Identifier: Apache-2.0
#include "engine/one_rank.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <list>
#include <map>
#include <numeric>

#include <tessera/config/config_io.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/plan/memory_timeline.hpp>

#include "checkpoint/checkpoint_support.hpp"
#include "nn/serial_model.hpp"

namespace tessera::train_test {
namespace {

/// Returns the setup without what a single rank and a single microbatch do without.
Experiment without_mesh(Experiment setup) {
  DistributedConfig alone;
  alone.mesh_shape = {1};
  alone.mesh_axis_names = {"data"};
  if (setup.training.numerics.reproducible && !setup.training.distributed.zigzag) {
    alone.mesh_shape = {1, 1}, alone.mesh_axis_names = {"data", "context"};
    alone.zigzag = false;  // the order of sums over positions
  }
  alone.gradient_reduce_type = setup.training.distributed.gradient_reduce_type;
  alone.mixed_precision = setup.training.distributed.mixed_precision;
  setup.training.distributed = alone;
  setup.training.microbatches = 1;
  setup.training.activation_checkpointing = {};
  setup.training.check_finite = false;
  setup.training.check_replicas_every = 0;
  return setup;
}

bool rounds_operands(const Experiment& setup) {
  return setup.training.distributed.mixed_precision != MixedPrecision::no ||
         setup.model.matmul_precision != MatmulPrecision::strict;
}

bool rounds_moments(const Experiment& setup) {
  return setup.training.optimizer.moments_type != MomentsType::state;
}

bool sums_some_targets(const Experiment& setup) {
  return setup.training.ignore_index &&
         setup.training.distributed.gradient_reduce_type == GradientReduceType::sum;
}

/// Calls f with a value of the compute type of a setup.
template <class F>
void in_type_of(const Experiment& setup, const F& f) {
  switch (setup.training.distributed.mixed_precision) {
    case MixedPrecision::bf16:
      return f(BFloat16());
    case MixedPrecision::fp16:
      return f(Float16());
    case MixedPrecision::no:
      return setup.model.dtype == DType::float64 ? f(double()) : f(float());
  }
}

template <class T>
Trained train_engine(const Experiment& alone) {
  const Config config{alone.model, alone.data, alone.training, {}};
  const Mesh mesh(Communicator::world().alone("reference"), resolve_mesh(config, 1));
  TrainingSession<T> session(
      config.training, make_plan(plan_input(config, mesh.shape())), mesh,
      [&](const Plan& plan) { return make_data<StateOf<T>>(plan, 0, config.data); });
  Trained trained;
  for (Size epoch = 0; epoch < config.training.num_epochs; ++epoch) {
    const std::vector<double> losses = session.run_epoch();
    trained.losses.push_back(std::accumulate(losses.begin(), losses.end(), 0.0) /
                             static_cast<double>(losses.size()));
  }
  const auto whole = [&](TensorRole role) {
    return to_host(whole_tensors(session.plan(), mesh, session.engine(), role));
  };
  trained.parameters = whole(TensorRole::parameter);
  trained.gradients = whole(TensorRole::gradient);
  trained.skipped_steps = session.engine().loss_scale().skipped_steps();
  return trained;
}

/// The largest relative differences to one rank.
struct Tolerance {
  double losses, gradients, parameters;
};

/// An optimizer that divides by a gradient's size may turn a rounding error into a whole step.
/// Rounded operands may be rounded in the other direction after sums in another order, and small
/// gradients are then far apart. Sums along `model` in 16 bits are rounded once more.
Tolerance tolerance_of(const Experiment& setup) {
  const bool sgd = setup.training.optimizer.kind == OptimizerKind::sgd && !rounds_moments(setup);
  if (rounds_operands(setup)) {
    const bool fp16 = setup.training.distributed.mixed_precision == MixedPrecision::fp16;
    const bool rounds_sums =
        setup.training.distributed.model_reduce_dtype == ModelReduceType::compute;
    const double some = (rounds_sums ? 4 : 2) * (fp16 ? roundoff<Float16> : roundoff<BFloat16>);
    return {some, std::numeric_limits<double>::infinity(), some};
  }
  if (setup.model.dtype == DType::float32)
    return sgd ? Tolerance{1e-5, 3e-5, 1e-4} : Tolerance{1e-5, 1e-3, 2e-3};
  return sgd ? Tolerance{1e-10, 1e-10, 1e-10} : Tolerance{1e-6, 1e-6, 1e-6};
}

void expect_like_alone(const Trained& trained, const Experiment& setup) {
  const Trained& alone = trained_alone(setup);
  EXPECT_EQ(trained.skipped_steps, alone.skipped_steps);
  if (setup.training.numerics.reproducible) {
    EXPECT_EQ(count_different(trained.losses, alone.losses), 0);
    EXPECT_EQ(count_different(trained.gradients, alone.gradients), 0);
    EXPECT_EQ(count_different(trained.parameters, alone.parameters), 0);
    return;
  }
  const Tolerance tolerance = tolerance_of(setup);
  EXPECT_LE(relative_difference(trained.losses, alone.losses), tolerance.losses);
  EXPECT_LE(relative_difference(trained.gradients, alone.gradients), tolerance.gradients);
  EXPECT_LE(relative_difference(trained.parameters, alone.parameters), tolerance.parameters);
}

/// Sums the memory of a training by the lines of its plan while it lives.
class MemoryByLine {
 public:
  void expect_as_in(const MemoryPlan& plan) const {
    for (const Line& line : lines_) {
      Size bytes = 0;
      for (const AllocationScope& scope : line.scopes) bytes += scope.current_bytes();
      EXPECT_EQ(bytes, plan.*line.planned) << line.first_label;
    }
  }

 private:
  struct Line {
    Line(Size MemoryPlan::*of, const std::vector<std::string>& labels)
        : planned(of), first_label(labels.front()) {
      for (const std::string& label : labels) scopes.emplace_back(label);
    }
    Size MemoryPlan::*planned;
    std::string first_label;
    std::list<AllocationScope> scopes;
  };
  std::array<Line, 9> lines_{
      Line{&MemoryPlan::parameters, {"tessera::parameters"}},
      Line{&MemoryPlan::gradients, {"tessera::gradients"}},
      Line{&MemoryPlan::moments, {"tessera::optimizer_moments"}},
      Line{&MemoryPlan::copies, {"tessera::parameter_copies"}},
      Line{&MemoryPlan::gathered_units, {"tessera::gathered_units"}},
      Line{&MemoryPlan::unit_gradients,
           {"tessera::unit_gradients", "tessera::incoming_gradients",
            "tessera::reduce_scatter_scratch"}},
      Line{&MemoryPlan::activations, {"tessera::activations"}},
      Line{&MemoryPlan::scratch,
           {"tessera::gemm_", "tessera::layer_scratch", "tessera::gradient_nodes",
            "tessera::gathered_rows", "tessera::orthogonalization"}},
      Line{&MemoryPlan::sums, {"tessera::sums", "tessera::checksum"}}};
};

/// Expects the predictions and the loss of the layers with the same parameters on one rank. A
/// variational autoencoder draws its noise by batch and has tests of its own.
template <class T>
void expect_predicts_like_layers(Trainer<T>& trainer, const Experiment& setup,
                                 const std::vector<double>& parameters) {
  if (setup.model.kind == ModelKind::vae) return;
  ModelSpec model = make_model(setup.model);
  model.ignore_index = setup.training.ignore_index;
  test::SerialModel<double> layers(model, setup.data.samples, setup.training.loss);
  Kokkos::deep_copy(layers.parameters(), Kokkos::View<const double*, Kokkos::HostSpace>(
                                             parameters.data(), parameters.size()));
  const Samples<double> exact = samples_of<double>(setup);
  const Samples<StateOf<T>> all = samples_of<StateOf<T>>(setup);
  // An evaluation leaves out the terms of routers.
  double loss = layers.loss(exact.x, exact.y);
  const std::vector<double> sums = to_host(layers.loss_sum());
  const LossShape shape = loss_shape(setup.training.loss, setup.data.samples,
                                     model.output_positions(), model.output_width());
  loss -= std::accumulate(sums.begin() + 1, sums.end(), 0.0) /
          static_cast<double>(loss_count(setup.training.loss, shape.rows, shape.cols));
  const double tolerance = rounds_operands(setup)                ? 40 * tolerance_of(setup).losses
                           : setup.model.dtype == DType::float32 ? 1e-4
                                                                 : 1e-11;
  EXPECT_NEAR(trainer.evaluate(all.x, all.y), loss, tolerance * loss);
  const std::vector<double> predicted = to_host(trainer.predict(all.x));
  EXPECT_LE(relative_difference(predicted, to_host(layers.output())), tolerance);
  expect_same_on_all_ranks(trainer.mesh().world(), predicted, "predictions");
}

template <class T>
Trained end_of(const Trainer<T>& trainer, const TrainingMetrics& metrics) {
  return {metrics.epoch_losses, to_host(trainer.gather(TensorRole::gradient)),
          to_host(trainer.gather()), metrics.skipped_steps};
}

}  // namespace

const Trained& trained_alone(const Experiment& setup) {
  static std::map<std::string, Trained> made;
  const Experiment alone = without_mesh(setup);
  const auto [at, is_new] =
      made.try_emplace(config_as_toml({alone.model, alone.data, alone.training, {}}));
  if (!is_new) return at->second;
  if (!rounds_operands(setup) && !rounds_moments(setup) && !setup.training.numerics.reproducible &&
      !sums_some_targets(setup))
    at->second = train_layers(alone);
  const std::vector<double>& losses = at->second.losses;
  if (losses.empty() || std::isnan(losses.back()))
    in_type_of(setup, [&](auto type) { at->second = train_engine<decltype(type)>(alone); });
  return at->second;
}

namespace {

/// Expects what a plan says of a training, and calls then(trainer, metrics).
template <class Then>
void expect_as_planned(const Experiment& setup, const CommOptions& comm, const Then& then) {
  in_type_of(setup, [&](auto type) {
    const MemoryByLine memory;
    Trainer<decltype(type)> trainer(setup.model, setup.training, comm);
    std::optional<AllocationScope> warm;
    Size allocations = 0;
    const TrainingMetrics metrics = trainer.fit(setup.data, [&](Size epoch, double) {
      if (epoch == 1) warm.emplace();
      allocations = warm->allocations();
    });
    warm.reset();
    EXPECT_EQ(allocations, 0) << "in warm steps";
    EXPECT_EQ(plan_violation(metrics), "");
    const Size rank = trainer.mesh().rank();
    memory.expect_as_in(trainer.plan(setup.data.samples).memory(rank));
    Size reached = 0;
    const nlohmann::json timeline = memory_timeline(trainer.engine().plan(), rank);
    for (const nlohmann::json& action : timeline["actions"])
      reached = std::max(reached, action["reaches"].get<Size>());
    EXPECT_EQ(reached, metrics.measured.device_bytes) << "in the timeline of memory";
    then(trainer, metrics);
  });
}

}  // namespace

void expect_as_planned(const Experiment& setup, const CommOptions& comm) {
  expect_as_planned(setup, comm, [&](auto& trainer, const TrainingMetrics& metrics) {
    const Mesh& mesh = trainer.mesh();
    EXPECT_EQ(mesh.rank(), comm.fake->rank);
    for (std::size_t a = 0; a < mesh.coordinates().size(); ++a) {
      EXPECT_EQ(mesh.axis(a).rank(), mesh.coordinates()[a]);
      EXPECT_EQ(mesh.axis(a).size(), mesh.shape().axes()[a].size);
    }
    EXPECT_FALSE(metrics.measured.traffic.empty());
    for (const double loss : metrics.epoch_losses) EXPECT_TRUE(std::isfinite(loss));
  });
}

void expect_trains_like_one_rank(const Experiment& setup, const CommOptions& comm) {
  expect_as_planned(setup, comm, [&](auto& trainer, const TrainingMetrics& metrics) {
    const Trained trained = end_of(trainer, metrics);
    expect_like_alone(trained, setup);
    expect_same_on_all_ranks(trainer.mesh().world(), trained.losses, "losses");
    expect_same_on_all_ranks(trainer.mesh().world(), trained.parameters, "parameters");
    expect_predicts_like_layers(trainer, setup, trained.parameters);
  });
}

void expect_resumes_like_one_rank(const Experiment& writes, const Experiment& reads) {
  const checkpoint_test::SharedDirectory directory;
  in_type_of(writes, [&](auto type) {
    Trainer<decltype(type)> saving(
        writes.model, writes.training, {},
        {.config = {.directory = directory.path(), .every_steps = 4, .at_end = false}});
    EXPECT_EQ(plan_violation(saving.fit(writes.data)), "");
    Trainer<decltype(type)> resuming(reads.model, reads.training);
    resuming.resume(checkpoint_test::newest_in(directory.path()));
    const TrainingMetrics metrics = resuming.fit(reads.data);
    EXPECT_EQ(metrics.resumed_at, 4);
    EXPECT_EQ(plan_violation(metrics), "");
    expect_like_alone(end_of(resuming, metrics), reads);
  });
}

}  // namespace tessera::train_test
