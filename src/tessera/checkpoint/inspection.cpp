// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <type_traits>

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

ArrayTexts texts_of(const CheckpointFile& file) {
  ArrayTexts texts;
  for (const auto& [name, tensor] : file.tensors())
    texts[name] = fmt::format("{} {}", name_of(tensor.type), to_string(tensor.array.shape));
  return texts;
}

/// Returns a number that grows with the value, by 1 from one value of the type to the next.
template <class T>
std::uint64_t rank_of(T value) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits sign = Bits(1) << (8 * sizeof(T) - 1);
  const Bits bits = std::bit_cast<Bits>(value);
  return bits & sign ? sign - (bits & ~sign) : sign + bits;
}

template <class T>
ArrayDifference compare(const std::string& name, const std::vector<T>& a, const std::vector<T>& b) {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<Size>::max());
  ArrayDifference difference{name, std::ssize(a)};
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(T)) == 0) continue;
    const std::uint64_t x = rank_of(a[i]), y = rank_of(b[i]), ulps = x > y ? x - y : y - x;
    ++difference.different;
    difference.most_ulps = std::max(difference.most_ulps, static_cast<Size>(std::min(ulps, most)));
  }
  return difference;
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

std::vector<ArrayDifference> compare_checkpoints(const std::string& a, const std::string& b) {
  const CheckpointFile left(a), right(b);
  if (const std::string other = misfits(texts_of(left), texts_of(right)); !other.empty())
    throw Error(ExitCode::usage, "{}: has other arrays than {}: {}", b, a, other);
  std::vector<ArrayDifference> differences;
  for (const auto& [name, tensor] : left.tensors())
    left.with_values(name, [&, name = name]<class T>(const std::vector<T>& values) {
      const ArrayDifference one = compare(name, values, right.values<T>(name));
      if (one.different > 0) differences.push_back(one);
    });
  return differences;
}

}  // namespace tessera
