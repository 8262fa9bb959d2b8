// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tessera/config/config.hpp>
#include <tessera/io/append_file.hpp>
#include <tessera/io/event_file.hpp>

namespace tessera {

/// Throws ConfigError if output.metrics or output.hashes is an existing file of something else,
/// which MetricsLog would shorten.
void check_appendable(const OutputConfig& output);

/// Writes the metrics of a training to the files of [output]. Each record is in the files when
/// write() returns. The README of this folder describes the files.
class MetricsLog {
 public:
  /// Opens the files. Records of an earlier run stay up to `steps`, the steps that the training has
  /// already made; later ones are removed. Throws Error (usage) if that fails, and like
  /// check_appendable().
  MetricsLog(const OutputConfig& output, Size steps);

  /// Writes a record. After a failure it warns and writes nothing more.
  void write(Size step, Size epoch, std::span<const NamedNumber> numbers);
  /// Writes the hashes of a step. Fails like write().
  void write_hashes(Size step, const std::vector<std::string>& names,
                    const std::vector<std::uint64_t>& hashes);
  /// Returns why a record could not be written; "" if all were.
  const std::string& failure() const { return failure_; }

 private:
  /// Calls `append` unless an earlier record failed; a failure becomes failure_.
  void try_to(const std::function<void()>& append);

  void open_events(const std::filesystem::path& directory, Size steps);

  std::optional<AppendFile> lines_, events_, hashes_;
  std::optional<AppendFile> lock_;  ///< an empty file, locked as long as events are written
  std::string failure_;
};

}  // namespace tessera
