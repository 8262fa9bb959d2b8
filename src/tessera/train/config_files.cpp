// SPDX-License-Identifier: Apache-2.0
#include <tessera/checkpoint/trainings.hpp>
#include <tessera/data/data_row.hpp>
#include <tessera/io/event_file.hpp>
#include <tessera/train/config_files.hpp>

namespace tessera {
namespace {

/// Adds the files of a model of transformers if `weights` is their folder or one of them.
void add_weights(std::vector<FileUse>& inputs, const std::filesystem::path& weights) {
  const std::string key = "checkpoint.init_from", config = "config.json";
  inputs.push_back({key, weights});
  std::error_code unused;
  if (std::filesystem::is_directory(weights, unused))
    inputs.back().owns = [=](const std::string& name) {
      return name == config || name.ends_with(".safetensors") || name.ends_with(".index.json");
    };
  else if (const auto beside = weights.parent_path() / config;
           std::filesystem::exists(beside, unused))
    inputs.push_back({key, beside});
}

}  // namespace

std::vector<FileUse> inputs_of(const Config& config) {
  const DataConfig& data = config.data;
  const DataRow& row = row_of(data.kind);
  std::vector<FileUse> inputs{
      {"distributed.schedule_file", config.training.distributed.schedule_file}};
  if (const std::string& weights = config.checkpoint.init_from; !weights.empty())
    add_weights(inputs, weights);
  if (row.reads_file) inputs.push_back({"data.file", data.file});
  if (row.reads_arrays && !row.reads_file) {  // otherwise these are names in data.file
    inputs.push_back({"data.x", data.x});
    inputs.push_back({"data.y", data.y});
  }
  return inputs;
}

std::vector<FileUse> outputs_of(const Config& config) {
  return {{"output.metrics", config.output.metrics, true},
          {"output.hashes", config.output.hashes, true},
          {"output.tensorboard", config.output.tensorboard, true, is_name_of_event_file},
          {"checkpoint.directory", config.checkpoint.directory, true, is_name_of_store}};
}

}  // namespace tessera
