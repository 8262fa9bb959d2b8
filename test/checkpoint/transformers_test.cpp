// SPDX-License-Identifier: Apache-2.0
// Models of Hugging Face's transformers, made by make_transformers_fixture.py: their weights give
// the logits, loss and gradients of that library on every mesh, and are exported as they were.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/checkpoint/model_export.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/io/safetensors.hpp>
#include <tessera/io/whole_file.hpp>

#include "checkpoint/resume_support.hpp"
#include "expect_error.hpp"

namespace tessera {
namespace {

namespace fs = std::filesystem;

using checkpoint_test::ranks;
using checkpoint_test::SharedDirectory;
using test::to_device;
using train_test::Axes;
using train_test::error_everywhere;
using train_test::Experiment;
using train_test::on_mesh;
using train_test::relative_difference;
using train_test::to_host;

constexpr Size samples = 4, positions = 8;
constexpr const char* index_name = "model.safetensors.index.json";

struct OtherModel {
  std::string name;
  void (*change)(ModelConfig&);  ///< from gpt2 or from llama
};

void to_llama(ModelConfig& model) {
  TransformerConfig& config = model.transformer;
  model.mlp.activation = Activation::silu;
  model.mlp.bias = false;
  config.norm = NormKind::rms_norm;
  config.norm_epsilon = 1e-6;
  config.positions = Positions::rope;
  config.feed_forward = FeedForward::gated;
}

constexpr const char *renormalize = "model.transformer.renormalize",
                     *tied = "model.transformer.tied";

/// Returns whether this version has the key.
bool is_known(const std::string& key) {
  return std::ranges::any_of(settings(),
                             [&](const Setting& setting) { return setting.key == key; });
}

void switch_on(ModelConfig& model, const std::string& key) {
  Config config{model};
  set(config, key, true);
  model = config.model;
}

void to_mixtral(ModelConfig& model) {
  to_llama(model);
  TransformerConfig& transformer = model.transformer;
  transformer.norm_epsilon = 1e-5;
  transformer.rope_theta = 1e6;
  transformer.experts = 4;
  transformer.capacity_factor = 0;
  transformer.balance_loss = 0;
  transformer.router_z_loss = 0;
  switch_on(model, renormalize);
}

const std::vector<OtherModel> models = [] {
  std::vector<OtherModel> all{
      {"gpt2", [](ModelConfig&) {}},
      {"llama",
       [](ModelConfig& model) {
         to_llama(model);
         model.transformer.width = 16;
         model.transformer.heads = 4;
         model.transformer.kv_heads = 2;
         model.transformer.rope_theta = 500;
         model.transformer.rope_scaling = 4;
         model.transformer.rope_original_context = 16;
       }},
      {"qwen3",
       [](ModelConfig& model) {
         to_llama(model);
         model.transformer.qk_norm = true;
       }},
  };
  if (is_known(tied))
    all.push_back({"gpt2_tied", [](ModelConfig& model) { switch_on(model, tied); }});
  if (is_known(renormalize)) all.push_back({"mixtral", to_mixtral});
  return all;
}();

fs::path folder_of(const std::string& name) { return fs::path(TESSERA_TRANSFORMERS) / name; }

Experiment setup_of(const OtherModel& model) {
  Experiment setup;
  setup.model.kind = ModelKind::transformer;
  setup.model.mlp.activation = Activation::gelu;
  setup.model.transformer = {
      .vocabulary = 13, .context = positions, .width = 8, .heads = 2, .inner_width = 12};
  model.change(setup.model);
  setup.training.batch_size = samples;
  setup.training.num_epochs = 1;
  setup.training.learning_rate = 0;
  setup.training.loss = LossKind::cross_entropy;
  setup.training.optimizer.kind = OptimizerKind::sgd;
  return setup;
}

std::vector<Axes> meshes_of_axes() {
  if (ranks() == 1) return {{{"data", 1}}};
  std::vector<Axes> all;
  if (ranks() % 2 == 0)
    for (const char* axis : {"model", "context", "pipeline"})
      all.push_back({{axis, 2}, {"fsdp", ranks() / 2}});
  if (ranks() % 4 == 0) all.push_back({{"pipeline", 2}, {"context", 2}, {"model", ranks() / 4}});
  all.push_back({{"fsdp", ranks()}});
  return all;
}

/// The arrays of a file, as doubles.
class Arrays {
 public:
  explicit Arrays(const fs::path& path) : file_(path.string()) {}
  std::vector<double> operator[](const std::string& name) const {
    const SafetensorsArray& array = file_.arrays().at(name);
    std::vector<double> values;
    with_compute_type(array.dtype().value(), [&]<class F>(F) {
      std::vector<F> stored(num_elements(array.shape));
      file_.read(array, 0, std::ssize(stored), stored.data());
      values.assign(stored.begin(), stored.end());
    });
    return values;
  }
  std::map<std::string, Shape> shapes() const {
    std::map<std::string, Shape> all;
    for (const auto& [name, array] : file_.arrays()) all[name] = array.shape;
    return all;
  }

 private:
  SafetensorsFile file_;
};

template <class T>
struct Result {
  double loss;
  std::vector<double> logits, parameters;
};

/// Trains one step on the data of the fixture, from these weights.
template <class T>
Result<T> step_from(Experiment setup, const Arrays& data, const std::string& weights) {
  const auto column = [&](const std::string& name) {
    const std::vector<double> values = data[name];
    return to_device(std::vector<T>(values.begin(), values.end()), samples * positions, 1);
  };
  setup.model.dtype = dtype_of<T>();
  Trainer<T> trainer(setup.model, setup.training, {}, {.config = {.init_from = weights}});
  const Matrix<T> x = column("x");
  const double loss = trainer.fit(x, column("y")).initial_loss();
  return {loss, to_host(trainer.predict(x)), to_host(trainer.gather())};
}

/// Returns the name of an array in another file; "" if that has no such array.
using Rename = std::function<std::string(const std::string&)>;

/// Returns the rest of names that begin so.
Rename without(const std::string& prefix) {
  return [=](const std::string& name) {
    return name.starts_with(prefix) ? name.substr(prefix.size()) : "";
  };
}

/// Writes the arrays in files of seven arrays, with an index.
void write_files(const fs::path& to, const SafetensorsFile& from, const Rename& rename) {
  nlohmann::json index;
  std::vector<ArrayFacts> facts;
  std::string data;
  const auto finish_file = [&] {
    if (facts.empty()) return;
    const std::string name = fmt::format("part{}.safetensors", index["weight_map"].size());
    for (const ArrayFacts& array : facts) index["weight_map"][array.name] = name;
    std::ofstream(to / name, std::ios::binary) << safetensors_header(facts) << data;
    facts.clear();
    data.clear();
  };
  for (const auto& [name, array] : from.arrays()) {
    const std::string there = rename(name);
    if (there.empty()) continue;
    facts.push_back({there, array.shape, array.dtype().value()});
    std::string bytes(array.bytes.count, '\0');
    from.read(array, 0, num_elements(array.shape), bytes.data());
    data += bytes;
    if (facts.size() == 7) finish_file();
  }
  finish_file();
  write_json(to / index_name, index);
}

/// Fills a folder from rank 0 with the model's config.json and the arrays of one of its files.
std::string folder_with(const SharedDirectory& directory, const OtherModel& model,
                        const std::string& file, const Rename& rename) {
  const Communicator world = Communicator::world();
  if (world.rank() == 0) {
    fs::copy(folder_of(model.name) / "config.json", directory.path());
    write_files(directory.path(), SafetensorsFile(folder_of(model.name) / file), rename);
  }
  world.barrier();
  return directory.path();
}

template <class T>
void expect_the_step_of_transformers(double tolerance) {
  for (const OtherModel& model : models) {
    const Arrays expected(folder_of(model.name) / "expected.safetensors");
    const SharedDirectory directory;
    const Experiment alone = on_mesh(setup_of(model), {{"data", ranks()}}, "data");
    const std::string stepped =
        folder_with(directory, model, "expected.safetensors", without("stepped/"));
    const std::vector<double> after = step_from<T>(alone, expected, stepped).parameters;
    for (const Axes& axes : meshes_of_axes()) {
      const bool shards = axes.back().name == "fsdp" && axes.back().size > 1;
      Experiment setup = on_mesh(setup_of(model), axes, shards ? "fsdp" : "data");
      SCOPED_TRACE(model.name + " on " + MeshShape(axes).to_string());
      const std::string weights = folder_of(model.name).string();
      const Result<T> before = step_from<T>(setup, expected, weights);
      EXPECT_LE(relative_difference(before.logits, expected["logits"]), tolerance);
      EXPECT_LE(relative_difference({before.loss}, expected["loss"]), tolerance);
      setup.training.learning_rate = 1;
      EXPECT_LE(relative_difference(step_from<T>(setup, expected, weights).parameters, after),
                tolerance);
    }
  }
}

TEST(Transformers, GiveLogitsLossAndGradients) {
  expect_the_step_of_transformers<double>(1e-12);
  expect_the_step_of_transformers<float>(1e-5);
}

// As GPT-2 on the hub.
TEST(Transformers, MayLackTheNameOfTheModel) {
  const OtherModel& gpt2 = models.front();
  const SharedDirectory directory;
  const auto rename = [](const std::string& name) {
    return name.starts_with("lm_head") ? name : without("transformer.")(name);
  };
  const std::string folder = folder_with(directory, gpt2, "model.safetensors", rename);
  const Arrays data(folder_of(gpt2.name) / "expected.safetensors");
  const Experiment setup = on_mesh(setup_of(gpt2), {{"data", ranks()}}, "data");
  EXPECT_EQ(step_from<float>(setup, data, folder).parameters,
            step_from<float>(setup, data, folder_of(gpt2.name).string()).parameters);
}

TEST(Transformers, AreExportedAsTheyWere) {
  const Communicator world = Communicator::world();
  for (const OtherModel& model : models) {
    SCOPED_TRACE(model.name);
    const SharedDirectory directory;
    const std::string original = folder_of(model.name).string();
    Experiment setup = on_mesh(setup_of(model), {{"fsdp", ranks()}}, "fsdp");
    setup.model.transformer.context = 32;  // all that the table of positions has
    setup.data.kind = DataKind::copy_task;
    setup.data.samples = samples;
    const auto trained = checkpoint_test::run<float>(
        setup, {.config = {.directory = directory.path(), .init_from = original}});
    for (const DType type : {DType::float32, DType::bfloat16}) {
      const double tolerance = type == DType::float32 ? 0 : 1.0 / 256;
      const fs::path folder = directory.file(std::string(name_of(type)));
      if (world.rank() == 0) {
        export_parameters(trained.metrics.last_checkpoint, folder / "model.safetensors",
                          ExportNames::huggingface, type);
      }
      world.barrier();
      const Arrays there(folder / "model.safetensors"),
          before(folder_of(model.name) / "model.safetensors");
      EXPECT_EQ(there.shapes(), before.shapes());
      for (const auto& [name, shape] : before.shapes()) {
        const bool is_there = there.shapes().contains(name);
        EXPECT_LE(is_there ? relative_difference(there[name], before[name]) : 1, tolerance) << name;
      }
      const auto again =
          checkpoint_test::run<float>(setup, {.config = {.init_from = folder.string()}});
      EXPECT_LE(relative_difference(again.parameters, trained.parameters),
                type == DType::float32 ? 0 : 1.0 / 256);
    }
  }
}

TEST(Transformers, OtherModelsAreNotExported) {
  const Communicator world = Communicator::world();
  Experiment setup = on_mesh(setup_of(models.front()), {{"data", ranks()}}, "data");
  setup.model.mlp.bias = false;
  setup.data.kind = DataKind::copy_task;
  setup.data.samples = samples;
  const SharedDirectory directory;
  const std::string saved =
      checkpoint_test::run<float>(setup, {.config = {.directory = directory.path()}})
          .metrics.last_checkpoint;
  EXPECT_EQ(test::error_of(
                [&] { export_parameters(saved, directory.file("a"), ExportNames::huggingface); }),
            "--names = huggingface: GPT2LMHeadModel needs model.bias = true, not false");
  world.barrier();
}

/// Replaces the value of a key in a JSON file.
void set_in(const fs::path& file, const std::string& key, const nlohmann::json& value) {
  nlohmann::json document = nlohmann::json::parse(read_text(file));
  document[key] = value;
  write_json(file, document);
}

/// Returns the end of the error for a folder of llama that rank 0 changed.
std::string refused(const Experiment& setup, const std::function<void(const fs::path&)>& change,
                    const Rename& rename = without("")) {
  const OtherModel& llama = models[1];
  const SharedDirectory directory;
  const std::string folder = folder_with(directory, llama, "model.safetensors", rename);
  const Communicator world = Communicator::world();
  if (world.rank() == 0) change(folder);
  world.barrier();
  const Arrays data(folder_of(llama.name) / "expected.safetensors");
  const std::string message = error_everywhere([&] { step_from<float>(setup, data, folder); });
  return message.substr(message.find(": ") + 2);
}

TEST(Transformers, RejectsWhatDoesNotFit) {
  const Experiment llama = on_mesh(setup_of(models[1]), {{"data", ranks()}}, "data");
  const auto unchanged = [](const fs::path&) {};
  const auto config = [](const std::string& key, const nlohmann::json& value) {
    return [=](const fs::path& folder) { set_in(folder / "config.json", key, value); };
  };
  Experiment other = llama;
  other.model.transformer.kv_heads = 4;
  other.model.transformer.norm_epsilon = 1e-5;
  other.model.transformer.rope_scaling = 1;
  other.model.transformer.rope_original_context = 8192;
  other.model.mlp.activation = Activation::gelu;
  EXPECT_EQ(
      refused(other, unchanged),
      "needs model.transformer.kv_heads = 2, not 4; model.activation = \"silu\", not \"gelu\"; "
      "model.transformer.norm_epsilon = 1e-06, not 1e-05; model.transformer.rope_scaling = 4.0, "
      "not 1.0; "
      "model.transformer.rope_original_context = 16, not 8192");
  EXPECT_EQ(refused(llama, config("max_position_embeddings", 7)),
            "needs model.transformer.context = at most 7, not 8");
  EXPECT_EQ(refused(llama, config("max_position_embeddings", "many")),
            "needs model.transformer.context = \"many\", not 8");
  EXPECT_EQ(refused(llama, config("head_dim", 8)), "needs head_dim = 4 in config.json, not 8");
  EXPECT_EQ(refused(llama, config("rope_parameters",
                                  {{"rope_type", "yarn"}, {"rope_theta", 500}, {"factor", 4}})),
            "needs model.transformer.rope_original_context = 8192, not 16; "
            "rope_type = \"default\" in config.json, not \"yarn\"");
  EXPECT_EQ(refused(llama, config("vocab_size", nullptr)), "needs vocab_size in config.json");
  EXPECT_EQ(refused(llama, config("architectures", nlohmann::json::array({"BertModel"}))),
            "architectures = [\"BertModel\"]: must be one of LlamaForCausalLM, MistralForCausalLM, "
            "Qwen3ForCausalLM, MixtralForCausalLM, "
            "GPT2LMHeadModel");
  EXPECT_EQ(refused(llama, [](const fs::path& folder) { write_text(folder / "config.json", "{"); }),
            "must be a JSON object");
  EXPECT_EQ(refused(llama, [](const fs::path& folder) { fs::remove(folder / "config.json"); }),
            "has no parameter of the model; names of Hugging Face's transformers need a "
            "config.json beside the file");
  other = llama;
  other.model.transformer.vocabulary = 14;
  EXPECT_EQ(refused(other, config("vocab_size", 14)),
            "does not fit the model: lm_head.weight is float (13, 16), not float (14, 16); "
            "model.embed_tokens.weight is "
            "float (13, 16), not float (14, 16)");
  const auto without_norm = [](const std::string& name) {
    return name == "model.norm.weight" ? "" : name;
  };
  EXPECT_EQ(refused(llama, unchanged, without_norm),
            "does not fit the model: model.norm.weight is missing");
  EXPECT_EQ(
      refused(llama, [](const fs::path& folder) { fs::remove(folder / "part7.safetensors"); }),
      "cannot be read: No such file or directory");
  const auto repeat = [](const fs::path& folder) {
    fs::copy(folder / "part7.safetensors", folder / "same.safetensors");
    set_in(folder / index_name, "weight_map",
           {{"a", "part7.safetensors"}, {"b", "same.safetensors"}});
  };
  EXPECT_EQ(refused(llama, repeat),
            "has model.layers.0.self_attn.k_proj.weight, which another file also has");
  EXPECT_EQ(refused(llama, [](const fs::path& folder) { write_text(folder / index_name, "{}"); }),
            "must name files in its weight_map");
  EXPECT_EQ(refused(llama, [](const fs::path& folder) { fs::remove(folder / index_name); }),
            "cannot be read: No such file or directory");
  const std::string cut = refused(
      llama, [](const fs::path& folder) { fs::resize_file(folder / "part7.safetensors", 1000); });
  EXPECT_TRUE(cut.starts_with("has ") &&
              cut.find("bytes of values, but its header describes") != cut.npos)
      << cut;
}

}  // namespace
}  // namespace tessera
