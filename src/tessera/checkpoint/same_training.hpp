// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <tessera/checkpoint/training_state.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/config/config.hpp>

namespace tessera {

/// Reads the state of a checkpoint from which a training with this configuration can resume. Throws
/// the same Error (usage) on every rank with the first key that must not change, or the data, or if
/// ranks read different files. `data`: sample_checksums(); that of rank 0 counts. Collective.
TrainingState state_to_resume(const std::string& path, const Communicator& ranks,
                              const Config& config, const std::string& data);

/// Returns 8 digits that depend on all that a run that resumes must not change. `data`:
/// sample_checksums().
std::string fingerprint_of(const Config& config, const std::string& data);

/// Returns the newest complete checkpoint of the training in checkpoint.directory that this
/// configuration may go on with. If there is none, throws Error (usage) if it `must_exist`, else
/// warns of other trainings. Throws Error (usage) also if there are several, which it lists, if one
/// with the fingerprint of this run has only damaged files, or if there are only files of version
/// 0.2. One process calls it.
std::optional<std::filesystem::path> checkpoint_to_continue(const Config& config, bool must_exist);

}  // namespace tessera
