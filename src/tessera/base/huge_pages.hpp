// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>

namespace tessera {

/// Asks the system to back host memory that nothing has touched yet with huge pages. A hint:
/// without such pages, or for less than a few of them, nothing changes. Large messages between
/// processes of a node gain most, because the kernel copies them page by page; first touch becomes
/// cheaper, too.
void advise_huge_pages(void* data, Size bytes);

}  // namespace tessera
