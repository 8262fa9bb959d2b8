// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/base/types.hpp>

namespace tessera {

/// Reserves disk space for the first `bytes` of an open file. Returns the system's reason if the
/// disk, a quota or a limit leaves too little, otherwise nothing, also if the file system or the
/// system cannot reserve space.
std::string reserve_space(int file, Size bytes);

/// Makes all that is written to an open file from now on vanish: the descriptor becomes that of an
/// empty file in memory. Does nothing where the system has no such files.
void discard_writes(int file);

}  // namespace tessera
