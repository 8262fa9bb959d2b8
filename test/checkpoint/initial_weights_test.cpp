// SPDX-License-Identifier: Apache-2.0
// A training that starts from the parameters of a file has exactly these, on any mesh.
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <tessera/checkpoint/initial_weights.hpp>
#include <tessera/checkpoint/model_export.hpp>
#include <tessera/io/safetensors.hpp>

#include "checkpoint/resume_support.hpp"

namespace tessera {
namespace {

using checkpoint_test::End;
using checkpoint_test::expect_same_end;
using checkpoint_test::file_of;
using checkpoint_test::ranks;
using checkpoint_test::run;
using checkpoint_test::SharedDirectory;
using checkpoint_test::some_strategies;
using train_test::error_everywhere;
using train_test::Experiment;
using train_test::on_mesh;
using train_test::primes;

/// The parameters of the model of primes(), as a safetensors file of elements F.
template <class F>
class WeightsFile {
 public:
  /// `value(place)` returns an element; places count over all parameters in the model's order.
  template <class Value>
  WeightsFile(const Experiment& setup, ExportNames names, const Value& value) {
    const ModelSpec model = make_model(setup.model);
    std::string data;
    for (const LayerSpec& layer : model.layers)
      for (const ParameterSpec& parameter : layer.parameters) {
        const ExportedParameter there =
            exported_parameter(path_of(layer, parameter), parameter.shape, names);
        facts.push_back({there.names.front(), there.shape, dtype_of<F>()});
        const Size elements = num_elements(parameter.shape);
        std::vector<F> stored(elements);
        for (Size i = 0; i < elements; ++i) {
          const F element = value(std::ssize(values));
          values.push_back(static_cast<double>(element));
          const Size rows = parameter.shape[0], columns = elements / rows;
          stored[there.layout.transposed ? i % columns * rows + i / columns : i] = element;
        }
        data.append(reinterpret_cast<const char*>(stored.data()), elements * sizeof(F));
      }
    bytes = safetensors_header(facts) + data;
  }
  /// Rank 0 writes it. Collective.
  std::string write(const SharedDirectory& directory) const {
    const std::string path = directory.file("weights.safetensors");
    const Communicator world = Communicator::world();
    if (world.rank() == 0) std::ofstream(path, std::ios::binary) << bytes;
    world.barrier();
    return path;
  }

  std::vector<ArrayFacts> facts;
  std::string bytes;
  std::vector<double> values;  ///< in the order of Trainer::gather()
};

/// Returns the set-up with other data, another optimizer and another batch size, and rates of zero.
Experiment without_steps(Experiment setup) {
  setup.training.batch_size = 7;
  setup.training.num_epochs = 1;
  setup.training.learning_rate = 0;
  setup.training.optimizer.kind = OptimizerKind::sgd;
  setup.data.seed = 77;
  setup.data.samples = 15;
  return setup;
}

template <class T>
End start_from(const std::string& path, const Experiment& setup) {
  return run<T>(setup, {.config = {.init_from = path}});
}

template <class T, class F>
void expect_reads_exactly(ExportNames names) {
  const WeightsFile<F> file(primes(), names, [](Size place) {
    return static_cast<F>(static_cast<float>(place % 251 - 125) / 3.0F);
  });
  const SharedDirectory directory;
  const std::string path = file.write(directory);
  for (const auto& [what, setup] : some_strategies(without_steps(primes()), 8, 1)) {
    SCOPED_TRACE(what);
    const End end = start_from<T>(path, setup);
    EXPECT_EQ(end.parameters, file.values);
    EXPECT_EQ(end.metrics.init_from, path);
  }
}

TEST(InitFrom, SafetensorsOnEveryMesh) {
  expect_reads_exactly<float, float>(ExportNames::tessera);
  expect_reads_exactly<float, BFloat16>(ExportNames::pytorch);
  expect_reads_exactly<double, float>(ExportNames::pytorch);
  expect_reads_exactly<double, Float16>(ExportNames::tessera);
}

TEST(InitFrom, ADoubleIsRoundedToFloat) {
  const WeightsFile<double> file(primes(), ExportNames::pytorch,
                                 [](Size place) { return static_cast<double>(place) / 3 - 100; });
  const SharedDirectory directory;
  const End end = start_from<float>(file.write(directory), without_steps(primes()));
  for (std::size_t i = 0; i < file.values.size(); ++i)
    ASSERT_EQ(end.parameters[i], static_cast<float>(file.values[i])) << i;
}

TEST(InitFrom, CheckpointsAndTheirExportsOnEveryMesh) {
  const auto setups = some_strategies(primes(), 6, 0);
  for (std::size_t i = 0; i < setups.size(); ++i) {
    const SharedDirectory directory;
    const auto& [from, writes] = setups[i];
    const End trained = run<float>(writes, {.config = {.directory = directory.path()}});
    const std::string saved = trained.metrics.last_checkpoint;
    const auto& [to, reads] = setups[(i + 1) % setups.size()];
    SCOPED_TRACE(from + ", then " + to);
    const Experiment still = train_test::with_options_that_act(without_steps(reads));
    EXPECT_EQ(start_from<float>(saved, still).parameters, trained.parameters);
    EXPECT_EQ(start_from<double>(saved, still).parameters, trained.parameters);
    for (const ExportNames names : {ExportNames::tessera, ExportNames::pytorch}) {
      const std::string exported = directory.file("model.safetensors");
      const Communicator world = Communicator::world();
      if (world.rank() == 0) export_parameters(saved, exported, names);
      world.barrier();
      EXPECT_EQ(start_from<float>(exported, still).parameters, trained.parameters);
      world.barrier();
    }
  }
}

// Layers read 16-bit copies, which other ranks may have to send.
TEST(InitFrom, CopiesInMixedPrecision) {
  const WeightsFile<float> file(primes(), ExportNames::tessera, [](Size place) {
    return static_cast<float>(place % 31 - 15) / 40;
  });
  const SharedDirectory directory;
  const std::string path = file.write(directory);
  std::vector<double> losses;
  for (const char* strategy : {"data", "zero1", "fsdp"}) {
    Experiment setup = without_steps(on_mesh(primes(), {{"data", ranks()}}, strategy));
    losses.push_back(start_from<float>(path, setup).metrics.final_loss());
    setup.training.distributed.mixed_precision = MixedPrecision::fp16;
    losses.push_back(start_from<Float16>(path, setup).metrics.final_loss());
  }
  for (const double loss : losses) EXPECT_NEAR(loss, losses.front(), 2e-3 * losses.front());
  const Experiment drawn = without_steps(primes());
  EXPECT_GT(std::abs(run<float>(drawn, {}).metrics.final_loss() - losses.front()),
            0.02 * losses.front());
}

TEST(InitFrom, ALaterFitContinuesAndResetStartsAgain) {
  const WeightsFile<float> file(primes(), ExportNames::tessera,
                                [](Size place) { return static_cast<float>(place % 7) / 8; });
  const SharedDirectory directory;
  Experiment setup = primes();
  Trainer<float> trainer(setup.model, setup.training, {},
                         {.config = {.init_from = file.write(directory)}});
  const TrainingMetrics first = trainer.fit(setup.data), second = trainer.fit(setup.data);
  EXPECT_LT(second.initial_loss(), first.final_loss());
  EXPECT_EQ(second.init_from, "");
  trainer.reset();
  EXPECT_EQ(trainer.fit(setup.data).epoch_losses, first.epoch_losses);
}

TEST(InitFrom, AResumedTrainingDoesNotStartAgain) {
  const WeightsFile<float> file(primes(), ExportNames::tessera,
                                [](Size place) { return static_cast<float>(place % 7) / 8; });
  const SharedDirectory directory;
  CheckpointConfig config{.directory = directory.path(), .init_from = file.write(directory)};
  config.every_steps = 2;
  config.keep = 0;
  const End whole = run<float>(primes(), {.config = config});
  EXPECT_GT(train_test::relative_difference(whole.metrics.epoch_losses,
                                            run<float>(primes(), {}).metrics.epoch_losses),
            1e-3);
  const End resumed =
      run<float>(primes(), {.config = {.init_from = config.init_from}}, file_of(directory, 2));
  expect_same_end(resumed, whole);
  EXPECT_EQ(resumed.metrics.init_from, "");
}

std::string refusal(const Experiment& setup, const std::string& path) {
  return error_everywhere([&] { start_from<float>(path, setup); });
}

TEST(InitFrom, ListsAllArraysThatDoNotFit) {
  const SharedDirectory directory;
  for (const ExportNames names : {ExportNames::tessera, ExportNames::pytorch}) {
    const bool ours = names == ExportNames::tessera;
    const std::string path =
        WeightsFile<float>(primes(), names, [](Size) { return 1; }).write(directory);
    const std::string begin =
        fmt::format("checkpoint.init_from = {}: does not fit the model: ", excerpt(path));
    Experiment other = primes();
    other.model.mlp.widths = {3, 12, 13, 7, 5, 2};
    EXPECT_EQ(refusal(other, path),
              begin + (ours ? "layer1/bias is float (11,), not float (12,); layer1/kernel is float "
                              "(3, 11), not float (3, 12); layer2/kernel is float (11, 13), not "
                              "float (12, 13)"
                            : "layer1.bias is float (11,), not float (12,); layer1.weight is float "
                              "(11, 3), not float (12, 3); layer2.weight is float (13, 11), not "
                              "float (13, 12)"));
    other.model.mlp.widths = {3, 11, 13, 7, 5, 2, 2};
    EXPECT_EQ(refusal(other, path),
              begin + (ours ? "layer6/bias is missing; layer6/kernel is missing"
                            : "layer6.bias is missing; layer6.weight is missing"));
    other.model.mlp.widths = {3, 11, 13, 7, 5};
    EXPECT_EQ(refusal(other, path),
              begin + (ours ? "layer5/bias is unknown; layer5/kernel is unknown"
                            : "layer5.bias is unknown; layer5.weight is unknown"));
    other.model.mlp.widths.assign(200, 3);
    const std::string many = refusal(other, path);
    EXPECT_LT(many.size(), 1200U);
    EXPECT_TRUE(many.ends_with(" more")) << many;
  }
}

TEST(InitFrom, RejectsFilesThatHoldNoUsableParameters) {
  const SharedDirectory directory;
  const std::string path = directory.file("weights.safetensors");
  EXPECT_EQ(refusal(primes(), path),
            fmt::format("checkpoint.init_from = {}: cannot be read: No such "
                        "file or directory",
                        excerpt(path)));
  WeightsFile<double> file(primes(), ExportNames::tessera,
                           [](Size place) { return place == 100 ? 1e300 : 0.0; });
  file.write(directory);
  EXPECT_EQ(refusal(primes(), path),
            path + ": layer2/kernel: has a value that is not finite in float32");
  file.bytes.pop_back();
  file.write(directory);
  EXPECT_TRUE(refusal(primes(), path).starts_with(path + ": has "));
  file.bytes = "PK\3\4 and the rest of another format";
  file.write(directory);
  EXPECT_EQ(refusal(primes(), path), path + ": is not a safetensors file, or is cut off");
  // A count in the place of a bias.
  WeightsFile<double> counts(primes(), ExportNames::tessera, [](Size) { return 1; });
  counts.bytes.replace(counts.bytes.find("F64"), 3, "I64");
  counts.write(directory);
  EXPECT_EQ(refusal(primes(), path),
            fmt::format("checkpoint.init_from = {}: does not fit the model: layer1/bias is I64 "
                        "(11,), not float (11,)",
                        excerpt(path)));
  const Communicator world = Communicator::world();
  const End trained = run<float>(primes(), {.config = {.directory = directory.path()}});
  const std::string saved = trained.metrics.last_checkpoint;
  if (world.rank() == 0) {
    const float changed = 3;
    checkpoint_test::change_tensor(saved, "layer2/bias", 4, &changed, 4);
  }
  world.barrier();
  EXPECT_EQ(refusal(primes(), saved), saved + ": layer2/bias: is damaged: its checksum differs");
}

}  // namespace
}  // namespace tessera
