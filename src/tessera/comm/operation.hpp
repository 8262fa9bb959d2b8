// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tessera {

enum class ReduceOp : std::uint8_t { sum, max, min };

/// What a communicator does. `split` and `agree` are control traffic: checked and watched like the
/// others, never in the ledger.
enum class Operation : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  all_to_all,
  send,
  receive,
  barrier,
  split,
  agree,
};

inline constexpr std::array<std::string_view, 10> operation_names = {
    "all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all",
    "send",       "receive",        "barrier",    "split",     "agree"};

inline constexpr std::size_t num_operations = operation_names.size();

constexpr std::string_view name_of(Operation operation) {
  return operation_names[static_cast<std::size_t>(operation)];
}

constexpr std::string_view name_of(ReduceOp op) {
  constexpr std::array<std::string_view, 3> names = {"sum", "max", "min"};
  return names[static_cast<std::size_t>(op)];
}

/// Between two ranks only; everything else needs every rank of the communicator.
constexpr bool is_point_to_point(Operation operation) {
  return operation == Operation::send || operation == Operation::receive;
}

}  // namespace tessera
