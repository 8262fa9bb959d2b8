// SPDX-License-Identifier: Apache-2.0
// A kind of layer that the library does not have: y = s x, with one learned factor s per column
// (LayerScale, Touvron et al. 2021). The library shards the model that uses it, plans its memory
// and its messages, and trains it. The losses are the same on every mesh. usage: mpirun -n 4
// own_layer [data=2,model=2]
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include <tessera/base/for_each.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/models/models.hpp>
#include <tessera/tessera.hpp>

using namespace tessera;

// T is float, double, BFloat16 or Float16; StateOf<T> is what the arithmetic is done in. A rank may
// have no rows.
template <class T>
void scale_forward(const LayerCall<T>& call) {
  const auto x = call.inputs[0];
  const auto y = call.output;
  const auto s = call.parameters[0];
  const Size columns = x.extent(1);
  for_each(
      "scale", x.size(), KOKKOS_LAMBDA(const Size k) {
        const Size i = k / columns, j = k % columns;
        y(i, j) = StateOf<T>(s(j)) * x(i, j);
      });
}

// dx = s dy, and ds is the sum of x dy over the rows. A gradient is added to the one of an earlier
// microbatch. dx is not wanted if the layer reads the batch itself.
template <class T>
void scale_backward(const LayerCall<T>& call) {
  const auto x = call.inputs[0];
  const auto s = call.parameters[0];
  const auto dy = call.output_gradient;
  const auto dx = call.input_gradients[0];
  const auto ds = call.parameter_gradients[0];
  const bool add = call.add_parameter_gradients, wants_dx = call.wants_input_gradient(0);
  for_each(
      "scale_backward", dy.extent(1),
      KOKKOS_LAMBDA(const Size j) {
        StateOf<T> sum = add ? ds(j) : 0;
        for (std::size_t i = 0; i < dy.extent(0); ++i) {
          const StateOf<T> gradient = dy(i, j);
          sum += x(i, j) * gradient;
          if (wants_dx) dx(i, j) = s(j) * gradient;
        }
        ds(j) = sum;
      },
      dy.size());
}

// The facts about the kind that a plan needs. The expression gives the indices of each tensor:
// samples, positions and columns. How any mesh axis splits the tensors follows from it. The
// backward pass reads x, so x stays in memory until then; dx may take the memory of dy.
constexpr LayerKind scale_kind{
    .name = "scale",
    .expression = {.inputs = {{"sp,c"}}, .parameters = {{"c"}}, .output = "sp,c"},
    .reads_inputs = always,
    .gradient_in_place = true,
    .forward = [](const auto& call) { scale_forward(call); },
    .backward = [](const auto& call) { scale_backward(call); }};

// Appends the layer to a model and returns its number. The rule for "mlp" splits the factors.
Size append_scale(ModelSpec& model, Size input, Size width) {
  LayerSpec layer;
  layer.kind = &scale_kind;
  layer.name = "scale/output";
  layer.unit = "scale";
  layer.inputs = {input};
  layer.sizes = {{'c', width}};  // the index c of the expression
  layer.parameters = {{"factors", {width}, {"mlp"}, Initial::ones}};
  return model.append(layer);
}

// The function that the model learns: y = the sum of each row of x.
void sum_of_row(const Matrix<float>& x, const Matrix<float>& y) {
  for_each(
      "sum_of_row", x.extent(0),
      KOKKOS_LAMBDA(const Size i) { y(i, 0) = x(i, 0) + x(i, 1) + x(i, 2) + x(i, 3); });
}

int main(int argc, char** argv) {
  return run_main(argc, argv, [&](Runtime& runtime) {
    ModelSpec model;
    model.input_width = 4;
    const Size hidden = append_dense(model, {.unit = "hidden",
                                             .in = 4,
                                             .out = 64,
                                             .logical_in = "embed",
                                             .logical_out = "mlp",
                                             .activation = Activation::tanh});
    const Size scaled = append_scale(model, hidden, 64);
    append_dense(model, {.unit = "output",
                         .input = scaled,
                         .in = 64,
                         .out = 1,
                         .logical_in = "mlp",
                         .logical_out = "embed",
                         .number = 1});

    TrainingConfig training;
    training.learning_rate = 0.01;
    training.batch_size = 32;
    PlanInput input;
    input.model = model;
    input.mesh = MeshShape::parse(argc > 1 ? argv[1] : "data=-1", runtime.world_size());
    static_cast<StepConfig&>(input) = training;
    input.samples = 250;
    const Plan plan = make_plan(input);
    const Mesh mesh(Communicator::world(), input.mesh);

    // Every rank has all samples; the session takes its share.
    const Matrix<float> x("x", input.samples, 4), y("y", input.samples, 1);
    fill_normal(x, key(0));
    sum_of_row(x, y);
    TrainingSession<float> session(training, plan, mesh, [&](const Plan& whole) {
      return TrainingData<float>{Dataset<float>::wrap(whole, mesh.rank(), x, y)};
    });

    for (int epoch = 1; epoch <= 20; ++epoch) {
      const std::vector<double> losses = session.run_epoch();  // of each batch
      const double sum = std::accumulate(losses.begin(), losses.end(), 0.0);
      if (epoch % 10 == 0 && runtime.world_rank() == 0)
        std::printf("mesh %s: epoch %d, loss %.6f\n", input.mesh.to_string().c_str(), epoch,
                    sum / static_cast<double>(losses.size()));
    }
    return ExitCode::ok;
  });
}
