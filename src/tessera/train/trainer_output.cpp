// SPDX-License-Identifier: Apache-2.0
// The trained tensors, and evaluation and prediction with them.
#include <algorithm>
#include <vector>

#include <tessera/base/alias.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/config/config_agreement.hpp>
#include <tessera/plan/layout/layer_placements.hpp>
#include <tessera/train/trainer.hpp>

namespace tessera {
namespace {

/// Copies a matrix into the columns of `to` from `first` on.
template <class T>
void copy_columns(const Matrix<const T>& from, const Matrix<StateOf<T>>& to, Size first) {
  const Size columns = static_cast<Size>(from.extent(1));
  for_each(
      "tessera::copy_columns", from.span(),
      KOKKOS_LAMBDA(Size i) { to(i / columns, first + i % columns) = from.data()[i]; });
}

}  // namespace

template <class T>
void Trainer<T>::check_trained() const {
  if (!session_) throw Error(ExitCode::usage, "trainer: nothing has been trained yet; call fit()");
}

template <class T>
auto Trainer<T>::gather(TensorRole role) const -> Vector<Data> {
  check_trained();
  return whole_tensors(session_->plan(), mesh_, engine(), role);
}

/// Runs the model on all samples, in batches as large as those of a step. Returns the mean loss.
template <class T>
double Trainer<T>::forward(const Matrix<Data>& x, const Matrix<Data>& y, const TakeRows& take,
                           bool from_prior) {
  const Dataset<Data> data = collectively(world_, [&] {
    check_trained();
    Plan plan = session_->plan();
    plan.input.samples = samples_of(x);
    if (plan.input.samples < 1) throw ConfigError("rows of x", "0", "must be positive");
    return Dataset<Data>::wrap(plan, mesh_.rank(), x, y);
  });
  check_same_everywhere(world_, "samples of x", data.num_samples());
  Engine<T>& engine = session_->engine();
  const Size at_once = session_->plan().steps_per_epoch();  // the engine's number of loss sums
  const Size batch_samples = session_->plan().input.batch_size;
  LossParts mean;
  for (Size k = 0; k < data.num_batches(); k += at_once) {
    std::vector<Size> samples;
    for (Size b = k; b < std::min(k + at_once, data.num_batches()); ++b) {
      Batch<Data> batch = data.batch(b);
      batch.from_prior = from_prior;
      // Batches of a sample from the prior get different draws.
      const Size before = b * batch_samples, drawn_before = from_prior ? before : 0;
      batch.first += drawn_before;
      samples.push_back(batch.global_samples);
      engine.evaluate(batch, b - k, [&](const auto& part, const Matrix<const T>& prediction) {
        if (take) take(part.first + before - drawn_before, prediction);
      });
    }
    engine.sums().add_to_mean(mean, data.num_samples(), samples, 0);
  }
  mean.predictions *= engine.sums().take_weight(data.num_samples());
  return validation_loss(session_->plan().input.model, mean);
}

template <class T>
double Trainer<T>::evaluate(const Matrix<Data>& x, const Matrix<Data>& y) {
  return forward(x, y, {});
}

template <class T>
auto Trainer<T>::predict(const Matrix<Data>& x) -> Matrix<Data> {
  return output_of(x, false);
}

template <class T>
auto Trainer<T>::sample(Size samples) -> Matrix<Data> {
  if (!draws(model_))
    throw Error(ExitCode::usage,
                "trainer: this model has no latent variables, so it cannot generate samples");
  if (samples < 1) throw ConfigError("samples", std::to_string(samples), "must be positive");
  const Matrix<Data> nothing("tessera::no_input",
                             static_cast<std::size_t>(samples * model_.input_positions),
                             static_cast<std::size_t>(model_.input_width));
  return output_of(nothing, true);
}

template <class T>
auto Trainer<T>::output_of(const Matrix<Data>& x, bool from_prior) -> Matrix<Data> {
  check_trained();
  const Size positions = model_.output_positions(), columns = model_.output_width();
  const std::size_t rows = x.extent(0) / model_.input_positions * positions;
  const Matrix<Data> all("tessera::predictions", rows, static_cast<std::size_t>(columns)),
      nothing("tessera::no_target", rows, static_cast<std::size_t>(model_.target_width()));
  const Plan& plan = session_->plan();
  const bool splits = loss_placement(plan.input, plan.placements).is_shard();
  const Size first_column = splits ? plan.local_layers(mesh_.rank()).back().first_column() : 0;
  const SplitPart share = plan.local_layers(mesh_.rank()).back().share;
  forward(
      x, nothing,
      [&](Size first, const Matrix<const T>& prediction) {
        const Size rows = static_cast<Size>(prediction.extent(0)), own = share.own_count();
        if (share.parts == 1)
          return copy_columns(prediction, rows_of(all, {first * positions, rows}), first_column);
        for (Size s = 0; s * own < rows; ++s)  // the rows of a sample in their places
          for (const Size number : {0, 1}) {
            const Range run = share.own_run(number);
            const Size before = number == 0 ? 0 : share.own_run(0).count;
            copy_columns<T>(rows_of(prediction, {s * own + before, run.count}),
                            rows_of(all, {(first + s) * positions + run.begin, run.count}),
                            first_column);
          }
      },
      from_prior);
  // Each row, or a rank's columns of it, is on ranks of the loss's stage. Other ranks hold zeros.
  const MeshShape& mesh = mesh_.shape();
  const AxisSet holders = splits ? mesh.all_axes() : loss_axes(mesh);
  engine().communicators()[holders].all_reduce(Vector<Data>(all.data(), rows * columns));
  return all;
}

TESSERA_INSTANTIATE_CLASS(Trainer);

}  // namespace tessera
