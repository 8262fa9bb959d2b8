// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/data/data_config.hpp>

namespace tessera {

/// Bytes of the file data.file. Throws ConfigError, with the reason, if it cannot be read.
Size size_of_data_file(const DataConfig& data);

/// `count` bytes of data.file from byte `begin` on. Throws ConfigError if there are fewer.
std::vector<unsigned char> read_data_file(const DataConfig& data, Size begin, Size count);

}  // namespace tessera
