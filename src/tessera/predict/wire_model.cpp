// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstdint>

#include <tessera/predict/wire_model.hpp>

namespace tessera {
namespace {

/// Returns how many times the shares of all ranks go around a ring; 0 if the operation uses no
/// ring.
int circulations(Operation operation) {
  if (operation == Operation::all_reduce) return 2;
  return operation == Operation::all_gather || operation == Operation::reduce_scatter ||
                 operation == Operation::all_to_all
             ? 1
             : 0;
}

}  // namespace

double wire_factor(Operation operation, Size n) {
  return circulations(operation) > 0 ? rounds(operation, n) / static_cast<double>(n) : 1;
}

double rounds(Operation operation, Size n) {
  const int times = circulations(operation);
  return times > 0 ? times * static_cast<double>(n - 1) : fewest_rounds(operation, n);
}

double fewest_rounds(Operation operation, Size n) {
  const auto doublings = static_cast<double>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
  if (const int times = circulations(operation); times > 0) return times * doublings;
  return operation == Operation::broadcast || operation == Operation::barrier ? doublings : 1;
}

}  // namespace tessera
