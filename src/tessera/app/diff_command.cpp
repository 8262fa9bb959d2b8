// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/app/commands.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/process/standard_streams.hpp>

namespace tessera {
namespace {

using Hashes = nlohmann::ordered_json;  ///< hashes by name: loss, gradients, parameters

/// Returns the hashes of a file that output.hashes made, by step.
std::map<Size, Hashes> read_hashes(const std::string& path) {
  if (const std::string why = why_unreadable(path); !why.empty())
    throw Error(ExitCode::usage, "{}: {}", path, why);
  std::map<Size, Hashes> steps;
  std::ifstream file(path);
  Size number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (trim(line).empty()) continue;
    Hashes record = Hashes::parse(line, nullptr, false);
    if (!record.is_object() || !record.contains("step") || !record.contains("hashes") ||
        !record["step"].is_number_integer() || !record["hashes"].is_object())
      throw Error(ExitCode::usage, "{}:{}: is no record of output.hashes", path, number);
    steps[record["step"].get<Size>()] = std::move(record["hashes"]);
  }
  if (steps.empty()) throw Error(ExitCode::usage, "{}: has no records", path);
  return steps;
}

/// Returns the names in `both` whose hashes differ or are in one only, in the order in which a step
/// computes them: the loss, the gradients from the last layer to the first, the parameters.
std::vector<std::string> different_names(const Hashes& a, const Hashes& b, const Hashes& both) {
  std::vector<std::string> loss, gradients, parameters;
  for (const auto& [name, hash] : both.items()) {
    if (a.contains(name) && b.contains(name) && a[name] == b[name]) continue;
    if (name == "loss")
      loss.push_back(name);
    else if (name.ends_with(".gradient"))
      gradients.insert(gradients.begin(), name);
    else
      parameters.push_back(name);
  }
  loss.insert(loss.end(), gradients.begin(), gradients.end());
  loss.insert(loss.end(), parameters.begin(), parameters.end());
  return loss;
}

}  // namespace

ExitCode diff_command(const DiffOptions& options) {
  const auto a = read_hashes(options.a), b = read_hashes(options.b);
  std::vector<Size> common;
  for (const auto& [step, hashes] : a)
    if (b.contains(step)) common.push_back(step);
  if (common.empty())
    throw Error(ExitCode::usage, "{} and {}: have no step in common", options.a, options.b);
  std::string compared =
      fmt::format("{} ({} to {})", counted(static_cast<Size>(common.size()), "step"),
                  common.front(), common.back());
  bool has_all = true;
  const auto add_alone = [&](const std::string& file, const auto& steps, const auto& others) {
    std::vector<Size> alone;
    for (const auto& [step, hashes] : steps)
      if (!others.contains(step)) alone.push_back(step);
    if (alone.empty()) return;
    has_all = false;
    compared += fmt::format("; {}, from {} on, in {} only", counted(std::ssize(alone), "step"),
                            alone.front(), file);
  };
  add_alone(options.a, a, b);
  add_alone(options.b, b, a);
  for (std::size_t i = 0; i < common.size(); ++i) {
    const Hashes &of_a = a.at(common[i]), &of_b = b.at(common[i]);
    Hashes both = of_a;
    both.update(of_b);
    const std::vector<std::string> names = different_names(of_a, of_b, both);
    if (names.empty()) continue;
    constexpr std::ptrdiff_t most = 8;
    const auto end = names.begin() + std::min(most, std::ssize(names));
    print_output(fmt::format(
        "step {}: {} differs first; {} of {} hashes differ: {}{}\n{}\n", common[i], names.front(),
        names.size(), both.size(), join(std::vector(names.begin(), end)),
        end == names.end() ? "" : ", ...",
        i == 0 ? "no earlier step was compared"
               : fmt::format("step {}, the one compared before, is equal", common[i - 1])));
    return ExitCode::wrong_result;
  }
  print_output("the same bits in " + compared + "\n");
  return has_all ? ExitCode::ok : ExitCode::wrong_result;
}

}  // namespace tessera
