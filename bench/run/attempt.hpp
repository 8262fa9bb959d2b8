// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "run/case_steps.hpp"

namespace tessera::bench {

/// Runs one case, from its reference to its result file, on its ranks while the others sleep.
/// Collective over all ranks of the job. The result is final on rank 0; null, everywhere, if
/// another launch runs the case or has run it meanwhile.
nlohmann::json attempt_case(const Case& point, const AttemptContext& context);

/// The result of a case that does not apply.
nlohmann::json skipped_result(const Study& study, const Case& point, const std::string& launch);

}  // namespace tessera::bench
