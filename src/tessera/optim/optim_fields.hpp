// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/fields.hpp>
#include <tessera/optim/optimizer_config.hpp>
#include <tessera/optim/schedule.hpp>

namespace tessera {

const Fields<OptimizerConfig>& optimizer_fields();
const Fields<ScheduleConfig>& schedule_fields();
const Fields<ClipConfig>& clip_fields();

}  // namespace tessera
