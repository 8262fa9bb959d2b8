// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/predict/kernel_work.hpp>

namespace tessera {
namespace {

/// Time of a sum over a row or of a search in it beside its elements, in exponential functions: its
/// loop ends, and the lanes of a vector are joined. Measured; shuffles in a warp take about as
/// long.
constexpr double functions_per_sum = 12;

bool has_scores_in_memory(const LayerSpec& layer, AttentionScores scores) {
  return scores != AttentionScores::fused && !layer.kind->expression.streamed.empty();
}

/// Returns the number of scores of the samples and of a rank's heads: all positions by all
/// positions.
double count_scores(const LayerSpec& layer, Size samples) {
  return static_cast<double>(samples * layer.size("hu") * layer.positions() * layer.total('p'));
}

/// The products of attention whose scores are in memory: two forward, four backward. Each writes or
/// reads all scores once, and one launch multiplies all heads of all samples.
void write_scores(Work& work, const LayerSpec& layer, double scores, Size element_bytes) {
  const double products = work.pass == PassKind::forward ? 2 : 4;
  const Size width = layer.size("d");
  work.kernels = products;
  work.functions = 0;
  work.flops = products * 2 * scores * static_cast<double>(width);
  work.flops_of_side = {{GemmShape{width, layer.positions(), layer.total('p')}.side(), work.flops}};
  work.bytes += products * scores * static_cast<double>(element_bytes);
}

}  // namespace

Work layer_work(const LayerSpec& layer, Size samples, const PlanInput& input, PassKind pass,
                double share, AttentionScores scores) {
  const bool forwards = pass == PassKind::forward;
  const LayerProducts products = layer_products(layer, samples);
  Work work{.pass = pass, .has_products = !products.forward.empty()};
  if (samples == 0) return work;
  const Size element_bytes = size_of(input.compute_type);
  double calls = 0;
  std::vector<GemmShape> all = forwards ? products.forward : products.backward;
  if (!forwards) all.insert(all.end(), products.repeated.begin(), products.repeated.end());
  for (const GemmShape& product : all) {
    calls += share * static_cast<double>(product.launches);
    work.flops += share * product.flops();
    if (product.flops() > 0) work.flops_of_side[product.side()] += share * product.flops();
  }
  work.kernels = std::max(1.0, calls);
  const auto of_pass = [&](PassCount count) { return forwards ? count.forward : count.backward; };
  const LayerFunctions functions = layer.kind->functions(layer);
  const double of_sample =
      of_pass(functions.exponentials) + functions_per_sum * of_pass(functions.row_sums);
  work.functions = share * (static_cast<double>(samples) * of_sample);
  work.bytes = share * of_pass(count_operands(layer, samples)) * static_cast<double>(element_bytes);
  if (has_scores_in_memory(layer, scores))
    write_scores(work, layer, share * count_scores(layer, samples), element_bytes);
  return work;
}

std::optional<Work> softmax_work(const LayerSpec& layer, Size samples, const PlanInput& input,
                                 PassKind pass, double share, AttentionScores scores) {
  if (!has_scores_in_memory(layer, scores)) return std::nullopt;
  const auto element = static_cast<double>(size_of(input.compute_type));
  double kernels = 1, bytes_per_score = (pass == PassKind::forward ? 2 : 3) * element;
  if (scores == AttentionScores::scores_and_dropout) {
    kernels += 1;
    bytes_per_score += 2 * element + 1;  // a mask has a byte for each score
  }
  return Work{.pass = pass,
              .kernels = kernels,
              .bytes = share * count_scores(layer, samples) * bytes_per_score};
}

double functions_of_loss(LossKind kind, double elements, Size columns) {
  if (kind == LossKind::bce) return 4 * elements;  // two exponentials, a logarithm, two divisions
  if (kind != LossKind::cross_entropy || columns == 0) return 0;
  const double sums = 2 * functions_per_sum / static_cast<double>(columns);
  return (2 + sums) * elements;
}

}  // namespace tessera
