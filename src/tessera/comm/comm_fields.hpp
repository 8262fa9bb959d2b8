// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/fields.hpp>
#include <tessera/comm/comm_options.hpp>

namespace tessera {

const Fields<CommOptions>& comm_fields();

}  // namespace tessera
