// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <tessera/base/names.hpp>

namespace tessera {

enum class ReduceOp : std::uint8_t { sum, max, min };
template <>
inline constexpr std::array<std::string_view, 3> names_of<ReduceOp>{"sum", "max", "min"};

/// The operations of a communicator. `split` and `agree` are control traffic: they are checked and
/// watched like the others, but the ledger does not count them.
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

template <>
inline constexpr std::array<std::string_view, 10> names_of<Operation>{
    "all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all",
    "send",       "receive",        "barrier",    "split",     "agree"};

inline constexpr std::size_t num_operations = names_of<Operation>.size();

/// All other operations are collective.
constexpr bool is_point_to_point(Operation operation) {
  return operation == Operation::send || operation == Operation::receive;
}

constexpr bool is_reduction(Operation operation) {
  return operation == Operation::all_reduce || operation == Operation::reduce_scatter;
}

}  // namespace tessera
