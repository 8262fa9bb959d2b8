// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tessera/nn/models/model_fields.hpp>

namespace tessera {

std::string allowed_widths(const std::vector<Size>& widths) {
  if (static_cast<Size>(widths.size()) > most_layers + 1)
    return fmt::format("has {} widths; a model has at most {}", widths.size(), most_layers + 1);
  for (const Size width : widths) {
    if (width < 1) return "must all be positive";
    if (width > most_columns) return fmt::format("must all be at most {}", most_columns);
  }
  return "";
}

void check_no_output_activation(std::string_view kind, const MlpConfig& layers) {
  if (layers.output_activation != Activation::identity)
    reject("model.output_activation", name_of(layers.output_activation),
           "must be \"identity\" for model.kind = \"{}\"", kind);
}

}  // namespace tessera
