// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <tessera/base/types.hpp>

namespace tessera {

enum class ActionKind {
  forward,        ///< one layer on one microbatch
  loss,           ///< local loss sum and the gradient of the output
  backward,       ///< one layer: weight and bias gradients, input gradient if a layer needs it
  reduce,         ///< a gradient bucket over the batch axes, to the end
  start_reduce,   ///< the same, started only
  finish_reduce,  ///< waits for a started bucket
  clip,           ///< gradients by value or by global norm
  update,         ///< the optimizer on this rank's flat shard
};
std::string_view name_of(ActionKind kind);

/// One entry of a step's schedule. `index` is a layer or a bucket, as the kind says.
struct Action {
  ActionKind kind = ActionKind::forward;
  Size index = 0;
  Size microbatch = 0;
  friend bool operator==(const Action&, const Action&) = default;
};

/// "forward(1)", with a microbatch "forward(1, m0)", "reduce(bucket 0)", "update". Layers count
/// from 1, as in their names.
std::string to_string(const Action& action, bool with_microbatch);

}  // namespace tessera
