// SPDX-License-Identifier: Apache-2.0
// The list of the arrays that a checkpoint must hold, which the file contains.
#pragma once

#include <string>
#include <vector>

#include <tessera/io/hdf5_file.hpp>
#include <tessera/plan/checkpoint_plan.hpp>

namespace tessera {

std::vector<ArrayFacts> arrays_of(const std::vector<CheckpointTensor>& tensors);

/// Throws Error (usage) if the file lacks one of these arrays, or has it with another shape or
/// type. `where`, such as "in this run", says in messages where the wanted shape is from.
void check_arrays(const Hdf5File& file, const std::string& path,
                  const std::vector<ArrayFacts>& wanted, const char* where);

/// Writes the list to a new file.
void add_contents(Hdf5File& file, const std::vector<CheckpointTensor>& tensors);

/// Throws Error (usage) if the file lacks an array of its list. Files of version 1 have no list.
void check_contents(const Hdf5File& file, const std::string& path);

}  // namespace tessera
