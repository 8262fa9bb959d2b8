// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/fields.hpp>
#include <tessera/data/data_config.hpp>

namespace tessera {

const Fields<DataConfig>& data_fields();

}  // namespace tessera
