// SPDX-License-Identifier: Apache-2.0
// The terms that layers add to the loss of a training, by name.
#pragma once

#include <cstddef>
#include <vector>

#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/nn/models/model_spec.hpp>

namespace tessera {

/// The terms of all layers. Those of one name are added.
struct LossTerms {
  std::vector<LossTerm> all{};        ///< each once
  std::vector<std::size_t> of_sum{};  ///< for each of LayerSums::losses, its number in `all`
};
LossTerms loss_terms_of(const ModelSpec& model);

/// Returns the number of sums that a report has for a model: its LossTerms and LayerSums::routing.
Size reported_sums(const ModelSpec& model);

}  // namespace tessera
