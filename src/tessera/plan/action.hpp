// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/base/types.hpp>

namespace tessera {

/// What a rank does. Each kind makes at most one collective call.
enum class ActionKind : std::uint8_t {
  gather,         ///< a unit's parameters from all their shares, to the end
  start_gather,   ///< the same, started only
  finish_gather,  ///< waits for a started gather

  redistribute_input,   ///< what the layer before gave, as a layer's product needs it
  forward,              ///< one layer on one microbatch; only the product if its sum is to come
  redistribute_output,  ///< a row-parallel product: the sum over `model`
  activate,             ///< bias and activation of such a layer
  loss,                 ///< local loss sum and the gradient of the output

  redistribute_gradient,  ///< the gradient that a layer gives, as the layer before needs it
  activate_backward,      ///< the activation's part of backward, on the rank's own rows
  gather_gradient,        ///< the rows of all ranks of `model`
  backward,               ///< one layer: weight and bias gradients, input gradient if one needs it

  reduce_scatter,         ///< a unit's gradient, of which each rank keeps its share
  start_reduce_scatter,   ///< the same, started only
  finish_reduce_scatter,  ///< waits for a started one
  reduce,                 ///< a gradient bucket over the replicas, to the end
  start_reduce,           ///< the same, started only
  finish_reduce,          ///< waits for a started bucket

  check_finite,  ///< all ranks learn whether the gradient is finite everywhere
  clip,          ///< gradients by value or by global norm
  update,        ///< the optimizer on what this rank owns
};

/// What Action::index counts.
enum class ActionSubject : std::uint8_t { none, layer, unit, bucket };

struct ActionRow {
  std::string_view name;
  ActionSubject subject;
  bool of_microbatch;  ///< not of the step as a whole
};

/// In the order of the enumerators.
inline constexpr std::array<ActionRow, 21> action_rows{{
    {"gather", ActionSubject::unit, false},
    {"start_gather", ActionSubject::unit, false},
    {"finish_gather", ActionSubject::unit, false},
    {"redistribute_input", ActionSubject::layer, true},
    {"forward", ActionSubject::layer, true},
    {"redistribute_output", ActionSubject::layer, true},
    {"activate", ActionSubject::layer, true},
    {"loss", ActionSubject::none, true},
    {"redistribute_gradient", ActionSubject::layer, true},
    {"activate_backward", ActionSubject::layer, true},
    {"gather_gradient", ActionSubject::layer, true},
    {"backward", ActionSubject::layer, true},
    {"reduce_scatter", ActionSubject::unit, false},
    {"start_reduce_scatter", ActionSubject::unit, false},
    {"finish_reduce_scatter", ActionSubject::unit, false},
    {"reduce", ActionSubject::bucket, false},
    {"start_reduce", ActionSubject::bucket, false},
    {"finish_reduce", ActionSubject::bucket, false},
    {"check_finite", ActionSubject::none, false},
    {"clip", ActionSubject::none, false},
    {"update", ActionSubject::none, false},
}};

constexpr const ActionRow& row_of(ActionKind kind) {
  return action_rows[static_cast<std::size_t>(kind)];
}
constexpr std::string_view name_of(ActionKind kind) { return row_of(kind).name; }

/// One entry of a step's schedule. `index` is a layer, a unit or a bucket, as the kind says; the
/// layer behind the last one stands for the loss.
struct Action {
  ActionKind kind = ActionKind::forward;
  Size index = 0;
  Size microbatch = 0;
  friend bool operator==(const Action&, const Action&) = default;
};

/// "forward(1)", with a microbatch "forward(1, m0)", "reduce(bucket 0)", "gather(unit 1)",
/// "update". Layers and units count from 1, as in their names.
std::string to_string(const Action& action, bool with_microbatch);

}  // namespace tessera
