// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/runtime.hpp>

namespace tessera {

/// `tessera info`: what this program was built with and runs on, printed by rank 0. Collective.
ExitCode info_command(Runtime& runtime);

}  // namespace tessera
