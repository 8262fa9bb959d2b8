// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include <tessera/base/split.hpp>

namespace tessera {

/// Reserves disk space for some bytes of an open file, so that later writes do not run out of it.
/// Keeps the content. Where the file system cannot reserve space, writes to every block
/// (`may_write`) or does nothing. Returns the system's reason if that fails, for example because of
/// a quota.
std::string reserve_space(int file, const Range& bytes, bool may_write);

/// Returns true if this file or directory is on NFS, where hosts keep copies of pages that other
/// hosts may write to.
bool is_on_nfs(const std::filesystem::path& path);

/// Makes all that is written to an open file from now on vanish: the descriptor becomes that of an
/// empty file in memory. Does nothing where the system has no such files.
void discard_writes(int file);

}  // namespace tessera
