// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "temporary_directory.hpp"

namespace tessera::bench {

using test::TemporaryDirectory;

}  // namespace tessera::bench
