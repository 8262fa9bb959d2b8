// SPDX-License-Identifier: Apache-2.0
// The names of the files in a directory of checkpoints, and which training a checkpoint belongs to.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/types.hpp>

namespace tessera {

/// The end of the names of files that are not finished.
inline constexpr std::string_view unfinished = ".unfinished";

/// "step_0000000120.h5".
std::string checkpoint_name(Size step);

/// Returns none unless this is a checkpoint_name().
std::optional<Size> step_of_checkpoint(const std::string& name);

/// Returns true for the names that a training writes or removes in its directory.
bool is_name_of_store(const std::string& name);

/// Returns all entries. Throws ConfigError for checkpoint.directory if it cannot be read.
std::vector<std::filesystem::path> files_in(const std::filesystem::path& directory);

/// Returns the checkpoints, later steps first. Broken links do not count. Throws like files_in().
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& directory);

// TrainingState::training is "IDENTITY", of random digits. A training that resumes from a step
// before its last checkpoint becomes a branch, "IDENTITY/STEP-DIGITS".

/// Returns a new identity.
std::string new_training();

/// Returns a new branch that begins at `step`.
std::string new_branch(const std::string& training, Size step);

/// Returns true if both are branches of one training.
bool are_related(std::string_view training, std::string_view other);

/// Returns true if a state of `other` after `step` steps is also one of `training`.
bool has_passed(std::string_view training, std::string_view other, Size step);

}  // namespace tessera
