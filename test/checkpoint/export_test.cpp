// SPDX-License-Identifier: Apache-2.0
// Exported parameters in every element type.
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/checkpoint/model_export.hpp>
#include <tessera/io/safetensors.hpp>

#include "checkpoint/checkpoint_support.hpp"
#include "expect_error.hpp"

namespace tessera {
namespace {

using test::TemporaryDirectory;

constexpr const char* kernel_name = "layer1/kernel";

/// Returns a checkpoint in float64 whose kernel has these values: a matrix of one column.
std::string checkpoint_with(const TemporaryDirectory& directory,
                            const std::vector<double>& values) {
  const std::string path = directory.path() / "saved.safetensors";
  train_test::Experiment setup = train_test::primes();
  const Size rows = std::ssize(values);
  setup.model.mlp.widths = {rows, 1};
  setup.model.dtype = DType::float64;
  const Communicator alone = Communicator::world().alone("alone");
  const Mesh mesh(alone, MeshShape({{"data", 1}}));
  const Engine<double> engine(checkpoint_test::plan_on(setup, mesh.shape()), mesh, {});
  checkpoint_test::set_elements(engine, 0);
  for (const TensorPart& part : tensor_parts(engine.plan(), 0, TensorRole::parameter))
    if (part.slot.path == kernel_name)
      Kokkos::deep_copy(local_tensor(engine, part).values, test::to_device(values));
  checkpoint_test::write_file(path, alone, engine);
  return path;
}

template <class F>
std::vector<double> exported_as(const std::string& checkpoint, std::optional<DType> type) {
  const std::string to = checkpoint + ".exported";
  export_parameters(checkpoint, to, ExportNames::pytorch, type);
  const SafetensorsFile file(to);
  const SafetensorsArray& kernel = file.arrays().at("layer1.weight");
  EXPECT_EQ(kernel.dtype(), dtype_of<F>());
  EXPECT_EQ(file.arrays().at("layer1.bias").dtype(), dtype_of<F>());
  std::vector<F> values(num_elements(kernel.shape));
  file.read(kernel, 0, std::ssize(values), values.data());
  return {values.begin(), values.end()};
}

TEST(Export, RoundsToEveryTypeInOneStep) {
  const TemporaryDirectory directory;
  // Rounded to float first, the second and third value would be halfway between two half-precision
  // numbers.
  const double fp16 = 1 + std::ldexp(1, -11), bf16 = 1 + std::ldexp(1, -8), little = 1e-12;
  const std::vector<double> values{1.0 / 3, fp16 + little, fp16 - little,    fp16,
                                   -65504,  bf16 + little, -(bf16 - little), bf16};
  const std::string path = checkpoint_with(directory, values);
  EXPECT_EQ(exported_as<double>(path, {}), values);
  EXPECT_EQ(exported_as<double>(path, DType::float64), values);
  const std::vector<double> in_float = exported_as<float>(path, DType::float32);
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(in_float[i], static_cast<float>(values[i]));
  const std::vector<double> in_fp16 = exported_as<Float16>(path, DType::float16);
  EXPECT_EQ(in_fp16[0], 1365.0 / 4096);
  EXPECT_EQ(in_fp16[1], 1 + std::ldexp(1, -10));
  EXPECT_EQ(in_fp16[2], 1);
  EXPECT_EQ(in_fp16[3], 1);
  EXPECT_EQ(in_fp16[4], -65504);
  const std::vector<double> in_bf16 = exported_as<BFloat16>(path, DType::bfloat16);
  EXPECT_EQ(in_bf16[0], 171.0 / 512);
  EXPECT_EQ(in_bf16[4], -65536);
  EXPECT_EQ(in_bf16[5], 1 + std::ldexp(1, -7));
  EXPECT_EQ(in_bf16[6], -1);
  EXPECT_EQ(in_bf16[7], 1);
}

TEST(Export, TakesTensorsByTheBeginningOfTheirNames) {
  const TemporaryDirectory directory;
  const std::string path = checkpoint_with(directory, {1, 2}), to = path + ".exported";
  const auto exported = [&](const std::vector<std::string>& selected) {
    export_parameters(path, to, ExportNames::tessera, {}, selected);
    std::vector<std::string> names;
    const SafetensorsFile file(to);
    for (const auto& [name, array] : file.arrays()) names.push_back(name);
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(exported({}), (Names{"layer1/bias", "layer1/kernel"}));
  EXPECT_EQ(exported({"layer1/k", "moment2/"}),
            (Names{"layer1/kernel", "moment2/layer1/bias", "moment2/layer1/kernel"}));
  EXPECT_EQ(test::error_of([&] { exported({"layer2"}); }),
            "--select = layer2: must be beginnings of names in " + path);
}

TEST(Export, RejectsValuesBeyondTheRangeOfTheType) {
  const TemporaryDirectory directory;
  const std::string to = directory.path() / "model.safetensors";
  for (const auto& [value, type] :
       {std::pair(65520.0, DType::float16), std::pair(1e39, DType::float32),
        std::pair(-3.4e38, DType::bfloat16)}) {
    const std::string path = checkpoint_with(directory, {0, value});
    EXPECT_EQ(test::error_of(
                  [&, type = type] { export_parameters(path, to, ExportNames::tessera, type); }),
              fmt::format("{}: {}: has the value {}, which is beyond the range of {}", path,
                          kernel_name, value, name_of(type)));
    EXPECT_FALSE(std::filesystem::exists(to));
  }
}

}  // namespace
}  // namespace tessera
