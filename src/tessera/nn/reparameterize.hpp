// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <tessera/nn/layer_spec.hpp>

namespace tessera {

/// A draw from the normal distribution that two layers of `width` columns describe (Kingma and
/// Welling 2014, "Auto-Encoding Variational Bayes", section 2.4):
/// z = mean + exp(logvar / 2) eps, eps standard normal. eps is a function of the seed, the step,
/// and the row and column in the whole batch, and is drawn again for backward. Adds beta KL(N(mean,
/// exp(logvar)) || N(0, 1)) = -beta/2 sum (1 + logvar - mean^2 - exp(logvar)), a sum over columns
/// and samples, to the sum of the losses (appendix B). Rows, and so their numbers, are those of the
/// batch: along `model` it is whole.
LayerSpec reparameterize(std::string name, std::string unit, Size mean, Size logvar, Size width,
                         double beta, std::uint64_t seed);

}  // namespace tessera
