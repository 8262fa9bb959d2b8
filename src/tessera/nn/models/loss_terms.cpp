// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/nn/models/loss_terms.hpp>

namespace tessera {

LossTerms loss_terms_of(const ModelSpec& model) {
  LossTerms terms;
  for (const LayerSpec& layer : model.layers)
    for (const LossTerm& term : layer.kind->loss_terms) {
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
