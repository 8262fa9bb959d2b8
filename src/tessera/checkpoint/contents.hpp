// SPDX-License-Identifier: Apache-2.0
// The arrays that a checkpoint must hold: the file has a list of them.
#pragma once

#include <string>
#include <vector>

#include <tessera/io/hdf5_file.hpp>
#include <tessera/plan/checkpoint_plan.hpp>

namespace tessera {

std::vector<ArrayFacts> arrays_of(const std::vector<CheckpointTensor>& tensors);

/// Throws Error unless the file has each of these arrays with its shape and element type. `where`:
/// whose shape and type that is, "in this run".
void check_arrays(const Hdf5File& file, const std::string& path,
                  const std::vector<ArrayFacts>& wanted, const char* where);

/// Adds the list to a new file.
void add_contents(Hdf5File& file, const std::vector<CheckpointTensor>& tensors);

/// Throws Error unless the file holds what its list says. Files of version 1 have none.
void check_contents(const Hdf5File& file, const std::string& path);

}  // namespace tessera
