// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tessera/base/alias.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/region.hpp>
#include <tessera/engine/draw_parameters.hpp>
#include <tessera/engine/engine.hpp>
#include <tessera/nn/loss.hpp>
#include <tessera/optim/clipping.hpp>

namespace tessera {
namespace {

/// What the optimizer updates: one run where the own parameters and gradients lie together, else a
/// run for each unit.
template <class T>
std::vector<ParameterRun<T>> runs_of(const StatePlan& state, const ParameterArena<T>& parameters,
                                     const ParameterArena<T>& gradients) {
  const Sharding& sharding = state.sharding;
  if (sharding.parameters || !sharding.moments) return {{parameters.flat(), gradients.flat()}};
  std::vector<ParameterRun<T>> runs;
  for (Size u = 0; u < static_cast<Size>(state.units.size()); ++u)
    runs.push_back({parameters.share(u), gradients.share(u)});
  return runs;
}

template <class T>
Gemm<T> make_gemm(const Plan& plan, const Mesh& mesh) {
  const MatmulScratch scratch = matmul_scratch(plan.input.precision, plan.local_model(mesh.rank()),
                                               plan.local_rows(mesh.rank()).microbatch);
  return Gemm<T>(plan.input.precision, scratch.left, scratch.right);
}

}  // namespace

template <class T>
Engine<T>::Engine(const Plan& plan, const Mesh& mesh, const StepOptions& options)
    : model_(plan.local_model(mesh.rank())),
      whole_model_(plan.input.model),
      layouts_(plan.layouts),
      state_(plan.state(mesh.rank())),
      options_(options),
      microbatches_(plan.input.microbatches),
      sums_plan_(plan_sums(plan)),
      groups_(plan.input, mesh),
      parameters_(ParameterArena<T>::parameters(model_, state_)),
      gradients_(ParameterArena<T>::gradients(model_, state_)),
      incoming_(allocate_vector<T>("tessera::incoming_gradients", state_.incoming)),
      activations_(layouts_, model_, whole_model_, plan.local_rows(mesh.rank())),
      along_model_(groups_[Group::model]),
      optimizer_(options.optimizer, state_.owned()),
      runs_(runs_of(state_, parameters_, gradients_)),
      unique_(plan.unique_gradients(mesh.rank())),
      gemm_(make_gemm<T>(plan, mesh)),
      sums_(allocate_zeros<double>("tessera::sums", sums_plan_.total())),
      host_sums_(Kokkos::create_mirror_view(sums_)),
      reductions_(plan.buckets.size()) {
  draw_parameters(plan, mesh.rank(), parameters_);
}

template <class T>
void Engine<T>::step(const Plan& plan, const Batch<T>& batch, Size slot, double learning_rate) {
  const Region region("tessera::step");
  gradient_scale_ = 1;
  ++steps_;
  for (const Action& action : plan.actions) {
    act(action, plan, pass_of(batch, action.microbatch), slot, learning_rate);
    poll();
  }
}

template <class T>
typename Engine<T>::Pass Engine<T>::pass_of(const Batch<T>& batch, Size microbatch) const {
  const Size rows = static_cast<Size>(batch.x.extent(0));
  return {batch, balanced_split(rows, microbatches_, microbatch), microbatch};
}

template <class T>
void Engine<T>::act(const Action& action, const Plan& plan, const Pass& pass, Size slot,
                    double rate) {
  const Size index = action.index;
  switch (action.kind) {
    case ActionKind::gather:
      return gather(index);
    case ActionKind::start_gather:
      gather_in_flight_ = start_gather(index);
      return;
    case ActionKind::finish_gather:
      return gather_in_flight_.wait();
    case ActionKind::redistribute_input:
      return redistribute_input(pass, index);
    case ActionKind::forward:
      return forward(pass, index);
    case ActionKind::redistribute_output:
      return redistribute_output(pass, index);
    case ActionKind::activate:
      return activate(pass, index);
    case ActionKind::loss:
      return loss(pass, slot);
    case ActionKind::redistribute_gradient:
      return redistribute_gradient(pass, index);
    case ActionKind::activate_backward:
      return activate_backward(pass, index);
    case ActionKind::gather_gradient:
      return gather_gradient(pass, index);
    case ActionKind::backward:
      return backward(pass, index);
    case ActionKind::reduce_scatter:
      return reduce_scatter(index, pass.index);
    case ActionKind::start_reduce_scatter:
      scatter_in_flight_ = start_reduce_scatter(index, pass.index);
      return;
    case ActionKind::finish_reduce_scatter:
      return finish_reduce_scatter(index, pass.index);
    case ActionKind::reduce:
      return groups_[Group::replica].all_reduce(gradients_of(plan.buckets[index]));
    case ActionKind::start_reduce:
      reductions_[index] = groups_[Group::replica].iall_reduce(gradients_of(plan.buckets[index]));
      return;
    case ActionKind::finish_reduce:
      return reductions_[index].wait();
    case ActionKind::check_finite:
      return check_finite();
    case ActionKind::clip:
      return clip();
    case ActionKind::update:
      return optimizer_.step(runs_, static_cast<T>(rate), gradient_scale_);
  }
}

template <class T>
void Engine<T>::gather(Size unit) const {
  const Region region("tessera::gather");
  groups_[Group::shard].all_gather(parameters_.share(unit), parameters_.unit(unit));
}

template <class T>
Request Engine<T>::start_gather(Size unit) const {
  return groups_[Group::shard].iall_gather(parameters_.share(unit), parameters_.unit(unit));
}

/// Where the own share of a microbatch's gradient arrives: the first one's where gradients are
/// kept, the others' beside them.
template <class T>
Vector<T> Engine<T>::scattered(Size unit, Size microbatch) const {
  const Vector<T> share = gradients_.share(unit);
  if (microbatch == 0) return share;
  return alias_vector(incoming_.data(), static_cast<Size>(share.extent(0)));
}

template <class T>
void Engine<T>::reduce_scatter(Size unit, Size microbatch) const {
  const Region region("tessera::reduce_scatter");
  const Communicator& ranks = groups_[Group::shard];
  if (!state_.sharding.gradients) return ranks.reduce_scatter(gradients_.unit(unit));
  ranks.reduce_scatter(gradients_.unit(unit), scattered(unit, microbatch));
  add_incoming(unit, microbatch);
}

template <class T>
Request Engine<T>::start_reduce_scatter(Size unit, Size microbatch) const {
  const Communicator& ranks = groups_[Group::shard];
  if (!state_.sharding.gradients) return ranks.ireduce_scatter(gradients_.unit(unit));
  return ranks.ireduce_scatter(gradients_.unit(unit), scattered(unit, microbatch));
}

template <class T>
void Engine<T>::finish_reduce_scatter(Size unit, Size microbatch) {
  scatter_in_flight_.wait();
  if (state_.sharding.gradients) add_incoming(unit, microbatch);
}

template <class T>
void Engine<T>::add_incoming(Size unit, Size microbatch) const {
  if (microbatch > 0)
    accumulate<T>(Vector<const T>(scattered(unit, microbatch)), gradients_.share(unit));
}

template <class T>
Vector<T> Engine<T>::gradients_of(const Bucket& bucket) const {
  const Size begin = state_.gradient(bucket.first_layer).begin;
  return gradients_.range({begin, state_.gradient(bucket.last_layer).end() - begin});
}

template <class T>
double Engine<T>::sum_over(const Communicator& ranks, Size slot, ReduceOp op) {
  ranks.all_reduce(alias_vector(sums_.data() + slot, 1), op);
  double value = 0;
  Kokkos::deep_copy(value, Kokkos::subview(sums_, slot));
  return value;
}

template <class T>
void Engine<T>::check_finite() {
  const Region region("tessera::check_finite");
  const Size slot = sums_plan_.losses + sums_plan_.norms;
  Kokkos::deep_copy(ExecSpace(), Kokkos::subview(sums_, slot), 0.0);
  for (const ParameterRun<T>& run : runs_) find_not_finite<T>(run.grads, sums_, slot);
  if (sum_over(groups_[Group::mesh], slot, ReduceOp::max) > 0)
    throw Error(ExitCode::wrong_result,
                fmt::format("training diverged: the gradient of step {} is not finite", steps_));
}

/// Each element of the gradient counts once over all ranks, in double.
template <class T>
void Engine<T>::clip() {
  const Region region("tessera::clip");
  if (options_.clip.value)
    clip_by_value<T>(gradients_.flat(), static_cast<T>(*options_.clip.value));
  if (!options_.clip.global_norm) return;
  const Size first = sums_plan_.losses;
  Size slot = first;
  for (const Range& range : unique_) sum_of_squares<T>(gradients_.range(range), sums_, slot++);
  if (unique_.empty()) sum_of_squares<T>(Vector<T>(), sums_, slot++);
  if (slot > first + 1) add_up(sums_, first, slot - first);
  const double squared_norm = sum_over(groups_[Group::split], first, ReduceOp::sum);
  gradient_scale_ = static_cast<T>(clip_scale(options_.clip, squared_norm));
}

/// Non-blocking MPI moves only inside MPI calls, so what has been started is asked for between
/// actions.
template <class T>
void Engine<T>::poll() {
  gather_in_flight_.test();
  scatter_in_flight_.test();
  for (Request& request : reductions_) request.test();
}

template <class T>
std::vector<double> Engine<T>::losses(const std::vector<Size>& global_rows) {
  const std::size_t steps = global_rows.size();
  groups_[Group::batch].all_reduce(
      alias_vector(sums_.data(), static_cast<Size>(steps) * microbatches_));
  Kokkos::deep_copy(host_sums_, sums_);
  std::vector<double> losses(steps);
  for (std::size_t s = 0; s < steps; ++s) {
    for (Size m = 0; m < microbatches_; ++m) losses[s] += host_sums_(s * microbatches_ + m);
    losses[s] /=
        static_cast<double>(loss_count(options_.loss, global_rows[s], whole_model_.output_width()));
  }
  return losses;
}

template class Engine<float>;
template class Engine<double>;

}  // namespace tessera
