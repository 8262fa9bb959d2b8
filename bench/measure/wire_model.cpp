// SPDX-License-Identifier: Apache-2.0
#include "measure/wire_model.hpp"

#include <bit>

namespace tessera::bench {

double wire_factor(Operation operation, Size n) {
  const auto ranks = static_cast<double>(n);
  switch (operation) {
    case Operation::all_reduce:
      return 2 * (ranks - 1) / ranks;
    case Operation::all_gather:
    case Operation::reduce_scatter:
    case Operation::all_to_all:
      return (ranks - 1) / ranks;
    default:
      return 1;
  }
}

double rounds(Operation operation, Size n) {
  switch (operation) {
    case Operation::all_reduce:
      return 2 * static_cast<double>(n - 1);
    case Operation::all_gather:
    case Operation::reduce_scatter:
    case Operation::all_to_all:
      return static_cast<double>(n - 1);
    case Operation::broadcast:
    case Operation::barrier:
      return static_cast<double>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
    default:
      return 1;
  }
}

}  // namespace tessera::bench
