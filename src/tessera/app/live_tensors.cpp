// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <tuple>

#include <fmt/format.h>

#include <tessera/app/live_tensors.hpp>
#include <tessera/base/alias.hpp>
#include <tessera/engine/replicas.hpp>
#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/tensor/inspect.hpp>
#include <tessera/tensor/partition_spec.hpp>

namespace tessera {
namespace {

constexpr std::size_t shown_parts = 16;

/// One rank's part of a tensor. Equal parts have the same elements with the same values.
struct Part {
  Shape offset, extent;
  Range kept;
  std::int64_t checksum = 0;
  friend bool operator<(const Part& a, const Part& b) {
    const auto key = [](const Part& p) {
      return std::tie(p.offset, p.extent, p.kept.begin, p.kept.count, p.checksum);
    };
    return key(a) < key(b);
  }
};

template <class T>
std::int64_t checksum_of(const Vector<const T>& values, Size first) {
  const Vector<std::int64_t> sum("tessera::live_checksum", 1);
  checksum<T>(values, first, sum, 0);
  std::int64_t value = 0;
  Kokkos::deep_copy(value, Kokkos::subview(sum, 0));
  return value & 0xffffffff;
}

nlohmann::json part_json(const std::string& path, const Piece& block, Range kept,
                         std::int64_t checksum) {
  return {{"path", path},        {"offset", block.offset}, {"extent", block.extent},
          {"first", kept.begin}, {"count", kept.count},    {"checksum", checksum}};
}

template <class T>
nlohmann::json batch_json(const std::string& path, const Matrix<const T>& rows, Size first_row) {
  const Size count = static_cast<Size>(rows.extent(0)), cols = static_cast<Size>(rows.extent(1));
  const Vector<const T> flat(rows.data(), static_cast<std::size_t>(count * cols));
  return part_json(path, {{first_row, 0}, {count, cols}}, {0, count * cols},
                   checksum_of<T>(flat, 0));
}

std::string part_text(const Part& part, const std::vector<int>& ranks, Size num_ranks) {
  const Size elements = num_elements(part.extent);
  std::string what = to_string(Piece{part.offset, part.extent});
  if (part.kept.count == 0)
    what += elements == 0 ? " (empty)" : ", none of it";
  else if (part.kept.count < elements)
    what += fmt::format(", elements {}:{} of {}", part.kept.begin, part.kept.end(), elements);
  return fmt::format("  {:<44} on {}\n", what, describe_ranks(ranks, num_ranks));
}

std::string parts_text(const std::string& path, const std::vector<nlohmann::json>& ranks) {
  std::map<Part, std::vector<int>> holders;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (const nlohmann::json& tensor : ranks[r]) {
      if (tensor["path"] != path) continue;
      const Part part{tensor["offset"],
                      tensor["extent"],
                      {tensor["first"].get<Size>(), tensor["count"].get<Size>()},
                      tensor["checksum"]};
      holders[part].push_back(static_cast<int>(r));
    }
  }
  std::string text;
  std::size_t lines = 0;
  for (const auto& [part, of] : holders) {
    if (++lines > shown_parts)
      return text + fmt::format("  ... and {} more parts\n", holders.size() - shown_parts);
    text += part_text(part, of, static_cast<Size>(ranks.size()));
  }
  return text;
}

}  // namespace

template <class T>
nlohmann::json describe_live_tensors(const Plan& plan, Size rank, const Engine<T>& engine,
                                     const Dataset<StateOf<T>>& data) {
  const Batch<StateOf<T>> batch = data.batch(0);
  const ModelSpec& model = plan.input.model;
  nlohmann::json tensors = nlohmann::json::array();
  const auto add = [&](const char* path, const Matrix<const StateOf<T>>& rows, Size positions) {
    tensors.push_back(batch_json<StateOf<T>>(path, rows, batch.first * positions));
  };
  add("batch/x", batch.x, model.input_positions);
  add("batch/y", batch.y, model.output_positions());
  for (const TensorRole role : {TensorRole::parameter, TensorRole::gradient, TensorRole::moment})
    for (const LocalTensor<StateOf<T>>& tensor : local_tensors(plan, rank, engine, role))
      tensors.push_back(part_json(tensor.slot.path, tensor.piece, tensor.kept,
                                  checksum_of<StateOf<T>>(tensor.values, tensor.kept.begin)));
  return tensors;
}

std::string live_tensors_text(const Plan& plan, const std::vector<nlohmann::json>& ranks) {
  const MeshShape& mesh = plan.input.mesh;
  std::string text;
  for (const Slot& tensor : plan.stage(0).slots) {
    if (tensor.in_frame()) continue;  // exists within a step only
    Shape shape = tensor.shape;
    const RankSet shares = tensor.experts > 0 ? RankSet::expert_shard : RankSet::shard;
    const std::string shares_over = mesh.group_name(axes_of(shares, plan.input));
    if (tensor.role == TensorRole::batch) shape[0] = plan.input.batch_size * tensor.positions;
    text += fmt::format(
        "\n{} ({}): {} of {}{}\n", tensor.path, name_of(tensor.role),
        to_partition_spec(tensor.placements, mesh, shape.size()).to_string(), to_string(shape),
        tensor.in_shares && !shares_over.empty() ? ", flat shares over " + shares_over : "");
    text += parts_text(tensor.path, ranks);
  }
  return text;
}

#define TESSERA_INSTANTIATE(T)                                                       \
  template nlohmann::json describe_live_tensors(const Plan&, Size, const Engine<T>&, \
                                                const Dataset<StateOf<T>>&);
TESSERA_FOR_COMPUTE_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
