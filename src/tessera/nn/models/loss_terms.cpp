// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/nn/layers/layer_row.hpp>
#include <tessera/nn/models/loss_terms.hpp>

namespace tessera {

std::vector<LossTerm> terms_of(const LayerSpec& layer) {
  if (!row_of(layer).adds_loss) return {};
  if (std::holds_alternative<Routing>(layer.settings))
    return {{"balance_loss", false}, {"router_z_loss", false}};
  return {{"kl_divergence"}};
}

LossTerms loss_terms_of(const ModelSpec& model) {
  LossTerms terms;
  for (const LayerSpec& layer : model.layers)
    for (const LossTerm& term : terms_of(layer)) {
      const auto found = std::find_if(terms.all.begin(), terms.all.end(),
                                      [&](const LossTerm& one) { return one.name == term.name; });
      terms.of_sum.push_back(static_cast<std::size_t>(found - terms.all.begin()));
      if (found == terms.all.end()) terms.all.push_back(term);
    }
  return terms;
}

Size reported_sums(const ModelSpec& model) {
  return static_cast<Size>(loss_terms_of(model).all.size()) + sums_of(model).routing;
}

}  // namespace tessera
