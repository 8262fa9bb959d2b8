// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/tensor/partition_spec.hpp>

namespace tessera {
namespace {

template <class... Args>
[[noreturn]] void reject_spec(std::string_view spec, fmt::format_string<Args...> allowed,
                              Args&&... args) {
  throw ConfigError("partition_spec", spec, allowed, std::forward<Args>(args)...);
}

/// Recursive descent over  spec := ("P" | "PartitionSpec") list(entry),  entry := None | name |
/// list(name),  list(x) := "(" [x {"," x} [","]] ")".
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), rest_(trim(text)) {}

  PartitionSpec spec() {
    if (!accept("PartitionSpec") && !accept("P")) fail();
    PartitionSpec result;
    list([&] { result.dims.push_back(entry()); });
    if (!rest_.empty()) fail();
    return result;
  }

 private:
  PartitionSpec::Entry entry() {
    if (accept("None")) return {};
    if (rest_.starts_with('(')) {
      PartitionSpec::Entry names;
      list([&] { names.push_back(name()); });
      return names;
    }
    return {name()};
  }

  template <class Item>
  void list(Item item) {
    if (!accept("(")) fail();
    while (!accept(")")) {
      item();
      if (!accept(",") && !rest_.starts_with(')')) fail();
    }
  }

  std::string name() {
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) fail();
    const auto end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos || end == 1) fail();
    const std::string result(rest_.substr(1, end - 1));
    rest_ = trim(rest_.substr(end + 1));
    return result;
  }

  bool accept(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_ = trim(rest_.substr(token.size()));
    return true;
  }

  [[noreturn]] void fail() const { reject_spec(text_, "must read like P('data', None)"); }

  std::string_view text_;
  std::string_view rest_;
};

}  // namespace

PartitionSpec PartitionSpec::parse(std::string_view text) { return Parser(text).spec(); }

std::string PartitionSpec::to_string() const {
  std::vector<std::string> parts;
  for (const Entry& entry : dims) {
    std::vector<std::string> names;
    for (const std::string& name : entry) names.push_back(fmt::format("'{}'", name));
    if (names.empty()) {
      parts.emplace_back("None");
    } else {
      parts.push_back(names.size() == 1 ? names[0] : fmt::format("({})", join(names)));
    }
  }
  return fmt::format("P({})", join(parts));
}

Placements to_placements(const PartitionSpec& spec, const MeshShape& mesh,
                         std::size_t tensor_rank) {
  if (spec.dims.size() > tensor_rank)
    reject_spec(spec.to_string(), "must be no longer than the {} of the tensor",
                counted(static_cast<Size>(tensor_rank), "dimension"));
  Placements placements = replicated(mesh);
  for (std::size_t d = 0; d < spec.dims.size(); ++d) {
    std::optional<std::size_t> outer;
    for (const std::string& name : spec.dims[d]) {
      const auto a = mesh.find(name);
      if (!a)
        reject_spec(spec.to_string(), "'{}' is not an axis of the mesh {}", excerpt(name),
                    mesh.to_string());
      if (!placements[*a].is_replicate())
        reject_spec(spec.to_string(), "names the axis '{}' twice", excerpt(name));
      if (outer && *a < *outer)
        reject_spec(spec.to_string(),
                    "the axes of one dimension must be in the order of the mesh {}",
                    mesh.to_string());
      placements[*a] = Placement::shard(static_cast<int>(d));
      outer = a;
    }
  }
  return placements;
}

PartitionSpec to_partition_spec(const Placements& placements, const MeshShape& mesh,
                                std::size_t tensor_rank) {
  check_placements(placements, mesh, tensor_rank);
  PartitionSpec spec;
  spec.dims.resize(tensor_rank);
  for (std::size_t a = 0; a < placements.size(); ++a) {
    if (placements[a].is_partial()) {
      throw Error(ExitCode::usage, "placements {}: a PartitionSpec cannot express Partial",
                  to_string(placements, mesh));
    }
    if (placements[a].is_shard()) {
      spec.dims[static_cast<std::size_t>(placements[a].dim())].push_back(mesh.axes()[a].name);
    }
  }
  return spec;
}

}  // namespace tessera
