// SPDX-License-Identifier: Apache-2.0
#include "measure/wire_model.hpp"

#include <bit>

namespace tessera::bench {
namespace {

/// How often the shares of n ranks go around the ring; 0 for what is no ring.
double passes(Operation operation) {
  switch (operation) {
    case Operation::all_reduce:
      return 2;
    case Operation::all_gather:
    case Operation::reduce_scatter:
    case Operation::all_to_all:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

double wire_factor(Operation operation, Size n) {
  return passes(operation) > 0 ? rounds(operation, n) / static_cast<double>(n) : 1;
}

double rounds(Operation operation, Size n) {
  if (passes(operation) > 0) return passes(operation) * static_cast<double>(n - 1);
  if (operation == Operation::broadcast || operation == Operation::barrier)
    return static_cast<double>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
  return 1;
}

}  // namespace tessera::bench
