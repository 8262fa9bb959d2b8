// SPDX-License-Identifier: Apache-2.0
#include "engine/serial_training.hpp"

#include <algorithm>
#include <string>

#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/optim/clipping.hpp>
#include <tessera/optim/optimizer.hpp>
#include <tessera/optim/schedule.hpp>

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

}  // namespace

Trained train_layers(const ModelSpec& model, const Experiment& setup) {
  const Samples<double> all = samples_of<double>(setup);
  const TrainingConfig& training = setup.training;
  const bool sums = training.distributed.gradient_reduce_type == GradientReduceType::sum;
  Optimizer<double> optimizer(training.optimizer, model.num_parameters());
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
      optimizer.step(runs, rate, clipping);
    }
    trained.losses.push_back(sum / batches);
  }
  trained.parameters = to_host(parameters);
  return trained;
}

}  // namespace tessera::train_test
