// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>

namespace tessera {

/// Asks the system for huge pages in host memory that has not been touched. It is only a hint.
/// Memory of less than 4 MiB is left alone. Large messages inside a node gain most, because the
/// kernel copies them page by page. The first touch becomes cheaper, too.
void advise_huge_pages(void* data, Size bytes);

}  // namespace tessera
