// SPDX-License-Identifier: Apache-2.0
#include "engine/serial_training.hpp"

#include <algorithm>
#include <map>
#include <string>

#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/optim/clipping.hpp>
#include <tessera/optim/optimizer.hpp>
#include <tessera/optim/schedule.hpp>

#include "engine/muon_formula.hpp"
#include "nn/serial_model.hpp"

namespace tessera::train_test {
namespace {

void scale(const Vector<double>& values, double factor) {
  Kokkos::parallel_for(
      "scale", values.extent(0), KOKKOS_LAMBDA(int i) { values(i) *= factor; });
}

/// Clips by value and returns the factor that clips by norm. `runs`: all parameters.
double clip(const ClipConfig& config, const Vector<double>& gradients,
            const std::vector<ParameterRun<double>>& runs) {
  if (config.value) clip_by_value(gradients, *config.value);
  double squares = 0;
  for (const ParameterRun<double>& run : runs)
    if (run.sign_rate == 0) squares += sum_of_squares<double>(run.grads);
  return clip_scale(config, squares);
}

/// Returns the parameters that muon orthogonalizes: matrices of products but for the last one.
std::map<std::string, MuonFormula> matrices_of(const ModelSpec& model,
                                               const OptimizerConfig& config) {
  std::map<std::string, MuonFormula> matrices;
  std::string last;
  for (const LayerSpec& layer : model.layers) {
    if (layer.tied_to >= 0) last.clear();
    for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
      if (!is_kernel(layer, p)) continue;
      last = path_of(layer, layer.parameters[p]);
      if (config.kind == OptimizerKind::muon && layer.parameters[p].shape.size() == 2)
        matrices[last];
    }
  }
  matrices.erase(last);
  return matrices;
}

}  // namespace

Trained train_layers(const ModelSpec& model, const Experiment& setup) {
  const Samples<double> all = samples_of<double>(setup);
  const TrainingConfig& training = setup.training;
  const bool sums = training.distributed.gradient_reduce_type == GradientReduceType::sum;
  std::map<std::string, MuonFormula> matrices = matrices_of(model, training.optimizer);
  Size elements = 0;  // of other parameters
  for (const LayerSpec& layer : model.layers)
    for (const ParameterSpec& parameter : layer.parameters)
      if (!matrices.contains(path_of(layer, parameter))) elements += num_elements(parameter.shape);
  Optimizer<double> optimizer(training.optimizer, elements);
  test::SerialModel<double> first(model, 0);
  const Vector<double> parameters = first.parameters();
  std::vector<ParameterRun<double>> runs;  // of a whole parameter each
  Trained trained;
  Size step = 0;
  for (Size epoch = 0; epoch < training.num_epochs; ++epoch) {
    double sum = 0, batches = 0;
    for (Size begin = 0; begin < setup.data.samples; begin += training.batch_size, ++batches) {
      const Size samples = std::min(training.batch_size, setup.data.samples - begin);
      test::SerialModel<double> net(model, samples, training.loss);
      Kokkos::deep_copy(net.parameters(), parameters);
      const auto part = [&](const Matrix<double>& of, Size positions) {
        return rows_of(of, {begin * positions, samples * positions});
      };
      const Matrix<double> x = part(all.x, model.input_positions),
                           y = part(all.y, model.output_positions());
      const double rate = learning_rate_at(training.schedule, training.learning_rate, step);
      net.set_step(++step);
      sum += net.loss(x, y);
      net.compute_gradients(x, y);
      const Vector<double>& gradients = net.gradients();
      const LossShape shape =
          loss_shape(training.loss, samples, model.output_positions(), model.output_width());
      const auto count = static_cast<double>(loss_count(training.loss, shape.rows, shape.cols));
      runs.clear();
      for (const LayerSpec& layer : model.layers)
        for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
          const std::string path = path_of(layer, layer.parameters[p]);
          const Vector<double> gradient = net.parameter(gradients, path);
          if (sums && layer.parameters[p].sign_rate == 0) scale(gradient, count);
          runs.push_back(
              {net.parameter(parameters, path), gradient,
               is_kernel(layer, p) || training.optimizer.weight_decay_on == WeightDecayOn::all,
               layer.parameters[p].sign_rate});
        }
      const double clipping = clip(training.clip, gradients, runs);
      trained.gradients = to_host(gradients);
      std::size_t run = 0;
      std::vector<ParameterRun<double>> others;
      for (const LayerSpec& layer : model.layers)
        for (const ParameterSpec& parameter : layer.parameters) {
          const ParameterRun<double>& of = runs[run++];
          const auto matrix = matrices.find(path_of(layer, parameter));
          if (matrix == matrices.end()) {
            others.push_back(of);
            continue;
          }
          std::vector<double> p = to_host(of.params), g = to_host(of.grads);
          for (double& value : g) value *= clipping;
          matrix->second.step(p, g, parameter.shape[0], parameter.shape[1], rate,
                              of.decays ? training.optimizer.weight_decay : 0, training.optimizer);
          Kokkos::deep_copy(of.params,
                            Kokkos::View<const double*, Kokkos::HostSpace>(p.data(), p.size()));
        }
      optimizer.step(others, rate, clipping);
    }
    trained.losses.push_back(sum / batches);
  }
  trained.parameters = to_host(parameters);
  return trained;
}

}  // namespace tessera::train_test
