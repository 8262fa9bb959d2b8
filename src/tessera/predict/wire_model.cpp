// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include <tessera/predict/wire_model.hpp>

namespace tessera {
namespace {

/// Returns how many times the shares of all ranks go around a ring; 0 if the operation uses no
/// ring.
double circulations(Operation operation) {
  switch (operation) {
    case Operation::all_reduce:
      return 2;
    case Operation::all_gather:
    case Operation::reduce_scatter:
    case Operation::all_to_all:
      return 1;
    case Operation::broadcast:
    case Operation::send:
    case Operation::receive:
    case Operation::barrier:
    case Operation::split:
    case Operation::agree:
      return 0;
  }
  return 0;
}

}  // namespace

double wire_factor(Operation operation, Size n) {
  return circulations(operation) > 0 ? rounds(operation, n) / static_cast<double>(n) : 1;
}

double rounds(Operation operation, Size n) {
  if (circulations(operation) > 0) return circulations(operation) * static_cast<double>(n - 1);
  return fewest_rounds(operation, n);
}

double fewest_rounds(Operation operation, Size n) {
  const auto doublings = static_cast<double>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
  if (circulations(operation) > 0) return circulations(operation) * doublings;
  return operation == Operation::broadcast || operation == Operation::barrier ? doublings : 1;
}

}  // namespace tessera
