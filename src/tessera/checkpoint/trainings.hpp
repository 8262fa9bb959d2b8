// SPDX-License-Identifier: Apache-2.0
// The folders of a directory of checkpoints: one per training, with a file per saved step,
// "DIRECTORY/3f9a1c20-20261128-130412-5e21/step_0000000120.safetensors".
#pragma once

#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/types.hpp>

namespace tessera {

/// The end of the names of files that are not finished.
inline constexpr std::string_view unfinished = ".unfinished";

/// "step_0000000120.safetensors".
std::string checkpoint_name(Size step);

/// Returns none unless this is a checkpoint_name().
std::optional<Size> step_of_checkpoint(const std::string& name);

/// Returns true for paths, relative to checkpoint.directory, that a training writes or removes.
bool is_name_of_store(const std::string& name);

/// Returns the names of all entries. Throws ConfigError for checkpoint.directory if it cannot be
/// read.
std::vector<std::string> names_in(const std::filesystem::path& directory);

/// Returns the steps up to `last` of the checkpoints of a training, complete or not, from the last
/// to the first. Throws like names_in().
std::vector<Size> steps_in(const std::filesystem::path& training,
                           Size last = std::numeric_limits<Size>::max());

/// Returns true if the file holds a checkpoint of which nothing is missing.
bool is_complete(const std::filesystem::path& file);

/// Returns the complete checkpoint of the latest step; none without checkpoints. Warns of later
/// ones that are damaged. If none is complete, throws the Error of the latest.
std::optional<std::filesystem::path> newest_complete(const std::filesystem::path& training);

/// Returns the folders in a directory that hold checkpoints, in the order of their names; none if
/// the directory does not exist.
std::vector<std::filesystem::path> trainings_in(const std::filesystem::path& directory);

/// Makes a folder for a new training, whose name begins with `fingerprint`, and returns its path.
std::filesystem::path make_training(const std::filesystem::path& directory,
                                    const std::string& fingerprint);

/// Returns the begin of the name of a training's folder.
std::string fingerprint_in(const std::string& training);

/// Removes folders of trainings that ended in their first save more than a day ago, unless another
/// process has locked them. Needs a file system with locks.
void remove_unfinished(const std::filesystem::path& directory);

/// Returns those of these steps whose TrainingState::loss() is finite, the smallest one first, of
/// equal ones the first step.
std::vector<Size> steps_by_loss(const std::filesystem::path& training, std::vector<Size> steps);

/// Removes checkpoints of steps up to `last`, except the `keep` newest complete ones, those after
/// them, and, of the others, the `keep_best` with the smallest losses. Ignores files that cannot be
/// removed.
void remove_old(const std::filesystem::path& training, Size last, Size keep, Size keep_best);

}  // namespace tessera
