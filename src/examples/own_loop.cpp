// SPDX-License-Identifier: Apache-2.0
// Linear regression with a training loop of its own: loss, gradients and update are written here;
// Tessera places the arrays on the ranks and sums the gradients. It prints the same losses on any
// number of ranks. "own_loop shard" shards the parameters, too.
#include <algorithm>
#include <cstdio>
#include <utility>

#include <tessera/tessera.hpp>

using Policy = Kokkos::RangePolicy<tessera::ExecSpace>;
using Matrix = tessera::Matrix<float>;
using State = tessera::ShardedState<float>;

constexpr int samples = 101, features = 6, batch_size = 25, epochs = 20;
constexpr float learning_rate = 0.01F;

// Whole arrays, the same on every rank: y = x0 - 2 x1 + 0.5, and some noise.
tessera::ArrayState<float> make_data() {
  const tessera::Vector<float> inputs("inputs", samples * features), targets("targets", samples);
  const Matrix x(inputs.data(), samples, features), y(targets.data(), samples, 1);
  tessera::fill_normal(x, tessera::key(0));
  tessera::fill_normal(y, tessera::key(1));
  Kokkos::parallel_for(
      "make_data", Policy(0, samples),
      KOKKOS_LAMBDA(const int i) { y(i, 0) = x(i, 0) - 2 * x(i, 1) + 0.5F + 0.1F * y(i, 0); });
  return {{"x", {inputs, {samples, features}}}, {"y", {targets, {samples, 1}}}};
}

// Rows [begin, end) of every array: nothing is copied.
tessera::ArrayState<float> rows(const tessera::ArrayState<float>& data, int begin, int end) {
  tessera::ArrayState<float> part;
  for (const auto& [path, array] : data) {
    const auto columns = array.shape[1];
    const auto range = Kokkos::make_pair(begin * columns, end * columns);
    part[path] = {Kokkos::subview(array.values, range), {end - begin, columns}};
  }
  return part;
}

// Returns the sum of the squared errors of this rank's rows. Into dz goes the derivative of the
// mean over the whole batch: divided by the rows of all ranks together, not by this rank's.
double loss_of_rows(const Matrix& x, const Matrix& y, const Matrix& kernel, const Matrix& bias,
                    float batch_rows, const Matrix& dz) {
  double sum = 0;
  Kokkos::parallel_reduce(
      "loss", Policy(0, x.extent(0)),
      KOKKOS_LAMBDA(const int i, double& loss) {
        float error = bias(0, 0) - y(i, 0);
        for (int j = 0; j < features; ++j) error += x(i, j) * kernel(j, 0);
        loss += error * error;
        dz(i, 0) = 2 * error / batch_rows;
      },
      sum);
  return sum;
}

// The terms that this rank's rows add to the gradients of kernel(j), and, after the last feature,
// of the bias.
void gradients_of_rows(const Matrix& x, const Matrix& dz, const Matrix& kernel,
                       const Matrix& bias) {
  Kokkos::parallel_for(
      "gradients", Policy(0, features + 1), KOKKOS_LAMBDA(const int j) {
        float& sum = j < features ? kernel(j, 0) : bias(0, 0);
        for (std::size_t i = 0; i < x.extent(0); ++i)
          sum += (j < features ? x(i, j) : 1) * dz(i, 0);
      });
}

void descend(const tessera::Vector<float>& parameter, const tessera::Vector<float>& gradient) {
  Kokkos::parallel_for(
      "descend", Policy(0, parameter.extent(0)),
      KOKKOS_LAMBDA(const int i) { parameter(i) -= learning_rate * gradient(i); });
}

// One step; returns the sum of the losses of this rank's rows.
double step(const tessera::Mesh& mesh, const State& parameters, const State& batch) {
  State whole, gradients;
  for (const auto& [path, parameter] : parameters) {
    // Gathered where the parameter is sharded, an alias where it is whole already.
    whole.emplace(path, tessera::redistribute(parameter, tessera::replicated(mesh.shape())));
    // Zeros; along "data", the one axis of this mesh, each rank will hold a term of the sum.
    gradients.emplace(path, tessera::ShardedTensor<float>(mesh, parameter.global_shape(),
                                                          {tessera::Placement::partial()}));
  }
  const Matrix x = batch.at("x").local_matrix(), y = batch.at("y").local_matrix();
  const float batch_rows = static_cast<float>(batch.at("x").global_shape()[0]);
  const Matrix dz("dz", x.extent(0), 1);
  const double loss = loss_of_rows(x, y, whole.at("kernel").local_matrix(),
                                   whole.at("bias").local_matrix(), batch_rows, dz);
  gradients_of_rows(x, dz, gradients.at("kernel").local_matrix(),
                    gradients.at("bias").local_matrix());
  // The terms are divided by the rows of the whole batch already, so their sum is the gradient.
  gradients = tessera::all_reduce_gradients(std::move(gradients), "sum");
  for (const auto& [path, parameter] : parameters) {
    // If the parameter is sharded, this rank keeps only its part.
    const auto own = tessera::redistribute(gradients.at(path), parameter.placements());
    descend(parameter.local(), own.local());
  }
  return loss;
}

int main(int argc, char** argv) {
  return tessera::run_main(argc, argv, [&](tessera::Runtime& runtime) {
    const auto mesh = tessera::create_data_parallel_mesh(tessera::Communicator::world());
    const tessera::ArrayState<float> zeros = {
        {"kernel", {tessera::Vector<float>("kernel", features), {features, 1}}},
        {"bias", {tessera::Vector<float>("bias", 1), {1}}}};
    // Aliases of the arrays wherever a rank's part lies in one piece: training overwrites them.
    const State parameters =
        tessera::shard_model_state(zeros, mesh, argc > 1 ? argv[1] : "replicate");
    const tessera::ArrayState<float> data = make_data();

    for (int epoch = 1; epoch <= epochs; ++epoch) {
      const Kokkos::View<double[1], Kokkos::HostSpace> loss("loss");
      // Batches of 25 rows and a last one of 1, which all ranks but one see without rows.
      for (int begin = 0; begin < samples; begin += batch_size) {
        const int end = std::min(begin + batch_size, samples);
        loss(0) += step(mesh, parameters, tessera::shard_batch(rows(data, begin, end), mesh));
      }
      mesh.world().all_reduce(loss);
      if (epoch % 5 == 0 && runtime.world_rank() == 0)
        std::printf("%d ranks: epoch %d, loss %.6f\n", runtime.world_size(), epoch,
                    loss(0) / samples);
    }
    return tessera::ExitCode::ok;
  });
}
