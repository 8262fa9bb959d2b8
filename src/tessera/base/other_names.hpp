// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tessera {

/// Returns what Tessera calls a thing that other programs call `word`, such as "fsdp" for "zero3",
/// if one of the candidates is that name. Upper case, "-", "_" and a final "size" do not matter.
/// For hints only: these names are not accepted.
std::optional<std::string> name_of_other_tool(std::string_view word,
                                              std::span<const std::string_view> candidates);

/// Returns "; did you mean mean?" with suggest_nearest() of a wrong name, or "".
std::string did_you_mean(std::string_view wrong, std::span<const std::string_view> names);

}  // namespace tessera
