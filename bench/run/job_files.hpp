// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tessera::bench {

/// The text of a file of scripts/jobs, compiled in: an installed program finds it wherever it is.
std::string_view job_file(const std::string& name);

}  // namespace tessera::bench
