// SPDX-License-Identifier: Apache-2.0
// Step 1: includes
#include <cstdio>

#include <tessera/tessera.hpp>

// y = sum of x squared along each row, on the device
void sum_of_squares(const tessera::Matrix<float>& x, const tessera::Matrix<float>& y) {
  Kokkos::parallel_for(
      "sum_of_squares", Kokkos::RangePolicy<tessera::ExecSpace>(0, x.extent(0)),
      KOKKOS_LAMBDA(const int i) {
        for (int j = 0; j < 4; ++j) y(i, 0) += x(i, j) * x(i, j);
      });
}

int main(int argc, char** argv) {
  return tessera::run_main(argc, argv, [](tessera::Runtime& runtime) {
    // Step 2: define the model
    const tessera::ModelConfig model{.mlp = {.widths = {4, 64, 1}, .seed = 42}};

    // Step 3: configure distributed training
    tessera::DistributedConfig distributed;
    distributed.strategy = tessera::Strategy::data;
    distributed.mesh_shape = {runtime.world_size()};
    distributed.mesh_axis_names = {"data"};
    tessera::TrainingConfig training;
    training.num_epochs = 20;
    training.learning_rate = 1e-3;
    training.batch_size = 32;
    training.distributed = distributed;

    // Step 4: train
    tessera::Trainer trainer(model, training);
    const tessera::Matrix<float> x("x", 256, 4), y("y", 256, 1);
    tessera::fill_normal(x, tessera::key(0));
    sum_of_squares(x, y);
    const tessera::TrainingMetrics metrics = trainer.fit(x, y);

    if (runtime.world_rank() == 0)
      std::printf("%d ranks: initial loss %.6f, final loss %.6f\n", runtime.world_size(),
                  metrics.initial_loss(), metrics.final_loss());
    return tessera::ExitCode::ok;
  });
}
