// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/inspection.hpp>
#include <tessera/tensor/placement.hpp>

namespace tessera {
namespace {

/// Returns a value of a document as text, or "unknown".
std::string value_at(const nlohmann::json& document, const char* pointer) {
  const nlohmann::json::json_pointer place(pointer);
  if (!document.contains(place)) return "unknown";
  const nlohmann::json& value = document.at(place);
  return value.is_string() ? one_line(value.get<std::string>()) : value.dump();
}

}  // namespace

std::string checkpoint_text(const std::string& path) {
  const CheckpointFile file(path);
  const TrainingState& state = file.state();
  const nlohmann::json &config = state.config, &provenance = state.provenance;
  std::string out;
  const auto line = [&](const char* what, const std::string& text) {
    out += fmt::format("{:<13}{}\n", what, text);
  };
  line("File:", fmt::format("{}, {}", path,
                            human_bytes(static_cast<Size>(std::filesystem::file_size(path)))));
  line("Step:",
       fmt::format("{}, after {} of {} epochs and {} of the next one", state.step, state.epoch(),
                   value_at(config, "/training/num_epochs"), counted(state.batch(), "step")));
  if (!state.epoch_losses.empty())
    line("Loss:", fmt::format("{:.6f} in the last complete epoch", state.epoch_losses.back()));
  if (!state.validations.empty())
    line("Validation:", fmt::format("{:.6f} after epoch {:g}", state.validations.back()[1],
                                    state.validations.back()[0]));
  if (state.loss_scale != LossScaleState{})
    line("Loss scale:", fmt::format("{:g}, {} skipped", state.loss_scale.value,
                                    counted(state.loss_scale.skipped_steps, "step")));
  line("Model:",
       fmt::format("{} in {}", value_at(config, "/model/kind"), value_at(config, "/model/dtype")));
  line("Optimizer:", value_at(config, "/optimizer/kind"));
  line("Written by:",
       fmt::format(
           "tessera {}, revision {}, on {} ranks, mesh {} {}, strategy {}",
           value_at(provenance, "/version"), value_at(provenance, "/git_revision"),
           value_at(provenance, "/world_size"), value_at(config, "/distributed/mesh_axis_names"),
           value_at(config, "/distributed/mesh_shape"), value_at(config, "/distributed/strategy")));
  line("Training:", one_line(state.training));
  line("Run began:", value_at(provenance, "/time"));
  out += "\n";
  for (const auto& [name, tensor] : file.tensors())
    out += fmt::format("  {:<36} {:<8} {:<18} {:>14} B  {}\n", one_line(name), name_of(tensor.type),
                       to_string(tensor.array.shape), with_thousands(tensor.array.bytes.count),
                       one_line(tensor.axes));
  return out;
}

Size verify_checkpoint(const std::string& path) {
  const CheckpointFile file(path);
  Size bytes = 0;
  for (const auto& [name, tensor] : file.tensors()) {
    file.with_values(name, [](const auto&) {});
    bytes += tensor.array.bytes.count;
  }
  return bytes;
}

}  // namespace tessera
