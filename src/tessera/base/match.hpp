// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>
#include <variant>

namespace tessera {

/// A function object with the overloads of all `Functions`.
template <class... Functions>
struct Overloads : Functions... {
  using Functions::operator()...;
};

/// Calls the one of `functions` that takes the alternative of `variant`, and returns its result.
/// All of them return the same type. The call compiles only if some function takes each
/// alternative.
template <class Variant, class... Functions>
decltype(auto) match(const Variant& variant, Functions&&... functions) {
  return std::visit(Overloads<std::decay_t<Functions>...>{std::forward<Functions>(functions)...},
                    variant);
}

}  // namespace tessera
