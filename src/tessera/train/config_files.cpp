// SPDX-License-Identifier: Apache-2.0
#include <tessera/checkpoint/trainings.hpp>
#include <tessera/data/data_row.hpp>
#include <tessera/io/event_file.hpp>
#include <tessera/train/config_files.hpp>

namespace tessera {

std::vector<FileUse> inputs_of(const Config& config) {
  const DataConfig& data = config.data;
  const DataRow& row = row_of(data.kind);
  std::vector<FileUse> inputs{{"checkpoint.init_from", config.checkpoint.init_from}};
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
