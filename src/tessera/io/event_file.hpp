// SPDX-License-Identifier: Apache-2.0
// Records of TensorBoard's event files: the protocol buffers Event, Summary and SessionLog
// (tensorflow/core/util/event.proto, framework/summary.proto) in the framing of TFRecord.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/base/types.hpp>

namespace tessera {

/// A number and its name.
using NamedNumber = std::pair<std::string_view, double>;

/// Return a record with its length and checksums. `time` is in seconds since 1970.
///
/// The first record of a file.
std::string event_version(double time);
/// Makes readers drop the numbers of earlier files from `step` on.
std::string event_restart(double time, Size step);
/// Numbers that belong to a step, stored as float32.
std::string event_numbers(double time, Size step, std::span<const NamedNumber> numbers);

/// Returns the path of a new event file. Its name sorts after the names of the directory's other
/// event files.
std::filesystem::path new_event_file(const std::filesystem::path& directory, double time);

/// Returns true for the names of event files, and of the lock of their directory.
bool is_name_of_event_file(const std::string& name);
inline constexpr const char* event_lock = ".lock";

}  // namespace tessera
