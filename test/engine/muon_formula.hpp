// SPDX-License-Identifier: Apache-2.0
// The formulas of torch.optim.Muon, by loops in double. PyTorch computes the steps in bf16.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <tessera/optim/optimizer_config.hpp>

namespace tessera::train_test {

using Numbers = std::vector<double>;

/// Returns A B' of row-major matrices (m, k) and (n, k).
inline Numbers times_transposed(const Numbers& a, const Numbers& b, Size m, Size n, Size k) {
  Numbers c(static_cast<std::size_t>(m * n));
  for (Size i = 0; i < m; ++i)
    for (Size j = 0; j < n; ++j)
      for (Size l = 0; l < k; ++l) c[i * n + j] += a[i * k + l] * b[j * k + l];
  return c;
}

inline Numbers transposed(const Numbers& a, Size rows, Size cols) {
  Numbers c(a.size());
  for (Size i = 0; i < rows; ++i)
    for (Size j = 0; j < cols; ++j) c[j * rows + i] = a[i * cols + j];
  return c;
}

/// zeropower_via_newtonschulz5 of a (rows, cols) matrix
inline Numbers orthogonalized(Numbers x, Size rows, Size cols) {
  if (rows > cols)
    return transposed(orthogonalized(transposed(x, rows, cols), cols, rows), cols, rows);
  double squares = 0;
  for (const double value : x) squares += value * value;
  for (double& value : x) value /= std::max(std::sqrt(squares), 1e-7);
  for (int step = 0; step < 5; ++step) {
    const Numbers gram = times_transposed(x, x, rows, rows, cols);
    Numbers update = times_transposed(gram, gram, rows, rows, rows);
    for (std::size_t i = 0; i < gram.size(); ++i)
      update[i] = -4.7750 * gram[i] + 2.0315 * update[i];
    const Numbers moved = times_transposed(update, transposed(x, rows, cols), rows, cols, rows);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] + moved[i];
  }
  return x;
}

/// One parameter (inputs, outputs), which PyTorch holds transposed.
struct MuonFormula {
  Numbers momentum{};

  void step(Numbers& p, const Numbers& g, Size inputs, Size outputs, double rate, double decay,
            const OptimizerConfig& config) {
    const double mu = config.muon_momentum;
    momentum.resize(p.size());
    Numbers update(p.size());
    for (std::size_t i = 0; i < p.size(); ++i) {
      momentum[i] += (1 - mu) * (g[i] - momentum[i]);  // lerp
      update[i] = g[i] + mu * (momentum[i] - g[i]);
    }
    update = orthogonalized(update, inputs, outputs);
    const auto in = static_cast<double>(inputs), out = static_cast<double>(outputs);
    const double ratio = config.muon_scale == MuonScale::original
                             ? std::sqrt(std::max(1.0, out / in))
                             : 0.2 * std::sqrt(std::max(in, out));
    for (std::size_t i = 0; i < p.size(); ++i)
      p[i] = p[i] * (1 - rate * decay) - rate * ratio * update[i];
  }
};

}  // namespace tessera::train_test
