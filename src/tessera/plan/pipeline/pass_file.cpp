// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/plan/pipeline/pipeline_actions.hpp>

namespace tessera {
namespace {

class PassFile {
 public:
  PassFile(const std::string& text, const std::string& file) {
    table_->file = file;
    table_->splits_backward = text.find_first_of("IW") != text.npos;
    for (const std::string& line : split_text(text, '\n')) {
      if (trim(line).find_first_not_of(", ") == line.npos) continue;
      table_->passes.emplace_back();
      places_.emplace_back();
      Size column = 0;
      for (const std::string& cell : split_text(line, ','))
        if (++column, !trim(cell).empty()) add(trim(cell), column);
    }
    place_chunks();
    check_ends();
  }
  std::shared_ptr<const PassTable> table() const { return table_; }

 private:
  template <class... Args>
  [[noreturn]] void reject(fmt::format_string<Args...> why, Args&&... args) const {
    throw ConfigError("distributed.schedule_file", fmt::format("\"{}\"", table_->file), why,
                      std::forward<Args>(args)...);
  }

  void add(std::string_view cell, Size column) {
    const std::string place =
        fmt::format("row {}, column {}, {}", places_.size(), column, excerpt(cell, 20));
    const std::size_t at = std::min(cell.find_first_of(pass_letters), cell.size() - 1);
    const auto letter = pass_letters.find(cell[at]);
    const auto number = number_of<int>(cell.substr(0, at)),
               microbatch = number_of<int>(cell.substr(at + 1));
    if (letter == pass_letters.npos || number.value_or(-1) < 0 || microbatch.value_or(-1) < 0)
      reject("{} must be a stage, one of F, I, W and B, and a microbatch, as 0F0", place);
    std::vector<PassKind> kinds{static_cast<PassKind>(letter)};
    if (kinds[0] == PassKind::backward && table_->splits_backward)
      kinds = {PassKind::input_gradients, PassKind::weight_gradients};
    for (const PassKind kind : kinds) {
      Size& expected = next_[{*number, kind}];
      if (*microbatch != expected)
        reject("{}: microbatch {} must come next, once and in order", place, expected);
      table_->microbatches = std::max(table_->microbatches, ++expected);
      table_->passes.back().push_back({kind, *microbatch, *number});
      places_.back().push_back(place);
    }
  }

  /// Finds the chunks of each row. Rejects a missing pass.
  void place_chunks() {
    if (next_.empty()) reject("has no passes");
    const Size chunks = next_.rbegin()->first.first + 1, p = shape_.stages = std::ssize(places_);
    shape_.virtual_stages = table_->virtual_stages = (chunks + p - 1) / p;
    // In a loop, chunk number p is on the first stage, too.
    table_->is_v =
        chunks > p && std::ranges::none_of(table_->passes[0],
                                           [&](const StagePass& pass) { return pass.chunk == p; });
    for (Size k = 0; k < p; ++k)
      for (std::size_t i = 0; i < places_[k].size(); ++i) {
        const Size number = table_->passes[k][i].chunk, row = stage_of(number, shape_);
        if (row != k)
          reject("{}: must be in row {}, because stages lie as a {}", places_[k][i], row + 1,
                 table_->is_v ? "V" : "loop");
        table_->passes[k][i].chunk = number / p;
      }
    for (Size number = 0; number < p * shape_.virtual_stages; ++number)
      for (const PassKind kind : kinds_of(shape_))
        if (const Size next = next_[{number, kind}]; next < table_->microbatches)
          reject("row {}: {} is missing", stage_of(number, shape_) + 1,
                 to_string({kind, next, number / shape_.stages}, shape_));
  }

  void check_ends() const {
    const std::vector<std::vector<Size>> ends = pass_ends(table_->passes, shape_);
    for (Size k = 0; k < shape_.stages; ++k)
      if (const std::size_t i = ends[k].size(); i < places_[k].size()) {
        const auto [stage, pass] = *needed_by({k, table_->passes[k][i]}, shape_);
        reject("{}: waits forever for {} in row {}", places_[k][i], to_string(pass, shape_),
               stage + 1);
      }
  }

  const std::shared_ptr<PassTable> table_ = std::make_shared<PassTable>();
  PipelineShape shape_{.table = table_};
  std::vector<std::vector<std::string>> places_;    ///< of the passes in the file, by row
  std::map<std::pair<Size, PassKind>, Size> next_;  ///< microbatch, by number of the chunk
};

}  // namespace

std::shared_ptr<const PassTable> read_passes(const std::string& text, const std::string& file) {
  return PassFile(text, file).table();
}

}  // namespace tessera
