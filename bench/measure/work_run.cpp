// SPDX-License-Identifier: Apache-2.0
#include "measure/work_run.hpp"

#include <memory>
#include <optional>
#include <vector>

#include <tessera/array/redistribute.hpp>
#include <tessera/mesh/redistribute_along.hpp>
#include <tessera/base/alias.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/comm/scratch.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/loss.hpp>
#include <tessera/nn/products/convert.hpp>
#include <tessera/optim/clipping.hpp>
#include <tessera/optim/optimizer.hpp>
#include <tessera/plan/layout/layouts.hpp>

namespace tessera::bench {
namespace {

/// Numbers around zero that no kernel makes overflow or denormal in a few repetitions.
template <class T>
void refill(const Vector<T>& values) {
  T* const data = values.data();
  for_each(
      "tessera::bench::refill", values.extent(0), KOKKOS_LAMBDA(Size i) {
        data[i] = static_cast<StateOf<T>>((i * 37) % 101 - 50) / StateOf<T>(50);
      });
}

/// Memory of one piece of work; what it writes is filled again between blocks of repetitions.
template <class T>
class WorkOperands {
 public:
  using State = StateOf<T>;

  explicit WorkOperands(const PlannedWork& planned, const Mesh& mesh)
      : planned_(planned),
        input_(planned.of->plan.input),
        work_(planned_.work),
        stage_(planned.of->plan.stages[planned.stage]),
        gemm_(input_.precision, scratch()),
        sums_("tessera::bench::sums", 1) {
    // A redistribution may be this rank's own business, but depends on its place all the same.
    ranks_ = mesh.over(axes_of(work_.ranks.value_or(RankSet::model), input_));
  }
  WorkOperands(const WorkOperands&) = delete;
  WorkOperands& operator=(const WorkOperands&) = delete;

  void refresh() const {
    for (const std::function<void()>& one : refills_) one();
  }

  std::function<void()> once() {
    const TrainingConfig& training = planned_.of->training;
    const Size n = work_.size;
    switch (work_.kind) {
      case WorkKind::forward:
        return [call = forward_call()] { forward(call); };
      case WorkKind::backward:
        return [call = backward_call()] { backward(call); };
      case WorkKind::loss:
        return loss();
      case WorkKind::accumulate:
        if (is_of_state_type())
          return [from = vector<State>(n), to = vector<State>(n)] { accumulate<State>(from, to); };
        return [from = vector(n), to = vector(n)] { accumulate<T>(from, to); };
      case WorkKind::copy:
        if constexpr (is_short_v<T>)
          if (work_.shape != name_of(dtype_of<T>()))
            return [from = vector<State>(n), to = vector(n)] { convert<State, T>(from, to); };
        return [from = vector(n), to = vector(n)] { Kokkos::deep_copy(ExecSpace(), to, from); };
      case WorkKind::clip_by_value:
        return [v = vector<State>(n)] { clip_by_value<State>(v, State(0.5)); };
      case WorkKind::sum_of_squares:
        return [v = vector<State>(n), sums = sums_] { sum_of_squares<State>(v, sums, 0); };
      case WorkKind::find_not_finite:
        return [v = vector<State>(n), sums = sums_] { find_not_finite<State>(v, sums, 0); };
      case WorkKind::update: {
        const auto optimizer = std::make_shared<Optimizer<State>>(training.optimizer, n);
        return
            [=, p = vector<State>(n), g = vector<State>(n)] { optimizer->step(p, g, State(1e-6)); };
      }
      case WorkKind::redistribute:
        return redistribution();
      case WorkKind::message:
        return messages();
      default:
        return call();
    }
  }

  std::function<Request()> start() {
    if (work_.phase != Work::Phase::started || work_.kind == WorkKind::message) return {};
    const Communicator& ranks = *ranks_;
    if (work_.kind == WorkKind::all_gather)
      return [=, all = vector(elements()), this] { return ranks.iall_gather(share_of(all), all); };
    const Size n = sums();
    const Vector<State> all = vector<State>(n);
    if (work_.kind == WorkKind::all_reduce) return [=] { return ranks.iall_reduce(all); };
    const Size share = balanced_split(n, ranks.size(), 0).count;
    const Scratch room{
        vector<State>(reduce_scatter_scratch(n, share, ranks.size(), dtype_of<State>()))};
    if (!is_sharded()) return [=] { return ranks.ireduce_scatter(all, room); };
    const Vector<State> out = vector<State>(static_cast<Size>(share_of(all).extent(0)));
    return [=] { return ranks.ireduce_scatter(all, out, room); };
  }

 private:
  MatmulScratch scratch() const {
    return matmul_scratch(planned_.of->plan, planned_.of->plan.first_rank(planned_.stage));
  }
  const Slot& slot(SlotId id) const { return stage_.slots[id]; }
  bool is_sharded() const { return sharding_on(input_.strategy, input_.mesh).gradients; }
  Size elements() const { return work_.size / size_of(dtype_of<T>()); }
  Size sums() const { return work_.size / size_of(dtype_of<State>()); }
  bool is_of_state_type() const { return work_.shape == name_of(dtype_of<State>()); }

  template <class E = T>
  Vector<E> vector(Size n) {
    const Vector<E> made = allocate_vector<E>("tessera::bench::work", n);
    refills_.push_back([made] { refill(made); });
    return made;
  }
  template <class E = T>
  Matrix<E> matrix(Size rows, Size columns) {
    return alias_matrix(vector<E>(rows * columns).data(), rows, columns);
  }
  template <class E>
  Vector<E> share_of(const Vector<E>& all) const {
    const Range own =
        balanced_split(static_cast<Size>(all.extent(0)), ranks_->size(), ranks_->rank());
    return alias_vector(all.data() + own.begin, own.count);
  }
  bool holds_sums(SlotId id) const { return slot(id).type != dtype_of<T>(); }
  /// Where the plan has both in one place, so has this.
  Matrix<T> matrix_beside(Size rows, Size columns, SlotId id, SlotId other,
                          const Matrix<const T>& memory) {
    if (stage_.in_one_place(id, other))
      return alias_matrix(const_cast<T*>(memory.data()), rows, columns);
    return matrix(rows, columns);
  }

  /// Of one rank with all columns, or of one that makes or reads terms.
  std::function<void()> loss() {
    const LossKind kind = input_.loss;
    const Slot& prediction = slot(planned_.action->reads[0]);
    const Size columns =
        parameter_block(prediction.shape, prediction.along_model, ranks_->size(), ranks_->rank())
            .extent[1];
    const Size positions = prediction.positions, classes = prediction.shape[1];
    const LossShape shape =
        loss_shape(kind, work_.size / std::max<Size>(1, positions * columns), positions, columns);
    const bool has_classes = targets_of(kind) == Targets::classes;
    const Matrix<T> p = matrix(shape.rows, shape.cols), g = matrix(shape.rows, shape.cols);
    const Matrix<State> t = matrix<State>(shape.rows, has_classes ? 1 : shape.cols);
    if (planned_.action->kind == ActionKind::loss_terms)
      return [=, terms = matrix<State>(shape.rows, 3)] { cross_entropy_terms<T>(p, t, 0, terms); };
    LossDetails<State> details;
    if (planned_.action->reads.size() > 2) {
      details.terms = matrix<State>(shape.rows, slot(planned_.action->reads[2]).shape[1]);
      details.classes = classes;
    }
    return [=, n = work_.size, sums = sums_] {
      loss_and_gradient<T>(kind, p, t, n, sums, 0, g, details);
    };
  }

  /// Of the rows that a layer works on, or of the samples.
  Size samples() const {
    const LayerSpec& layer = planned_.layer;
    return row_of(layer).mixes_positions ? work_.size : work_.size / layer.positions;
  }
  Size rows_in() const { return samples() * planned_.layer.in_positions; }
  Size rows_out() const { return samples() * planned_.layer.positions; }

  LayerCall<T> parameters_and_inputs() {
    const LayerSpec& layer = planned_.layer;
    const LayerRow& row = row_of(layer);
    LayerCall<T> call{layer, gemm_, samples()};
    for (std::size_t i = 0; i < layer.inputs.size(); ++i)
      if (!row.reads_batch || layer.inputs[i] != LayerSpec::data)
        call.inputs[i] = matrix(rows_in(), layer.in);
    call.scratch = vector<State>(row.scratch(layer));
    if (row.reads_batch)
      call.batch = {
          matrix<State>(samples() * input_.model.input_positions, input_.model.input_width), 0, 1,
          sums_.data(), State(1)};
    for (std::size_t p = 0; p < layer.parameters.size(); ++p)
      call.parameters[p] = vector(num_elements(layer.parameters[p].shape));
    return call;
  }

  LayerCall<T> forward_call() {
    const Action& action = *planned_.action;
    LayerCall<T> call = parameters_and_inputs();
    if (holds_sums(action.writes[0]))
      call.output_terms = matrix<State>(rows_out(), planned_.layer.out);
    else
      call.output = matrix_beside(rows_out(), planned_.layer.out, action.writes[0], action.reads[0],
                                  call.inputs[0]);
    if (action.writes.size() > 1)
      call.kept = matrix<State>(rows_out(), row_of(planned_.layer).kept_columns);
    return call;
  }

  LayerCall<T> backward_call() {
    const Action& action = *planned_.action;
    const LayerSpec& layer = planned_.layer;
    LayerCall<T> call = parameters_and_inputs();
    const std::size_t inputs = action.writes.size();
    call.output_gradient = matrix(rows_out(), layer.out);
    for (std::size_t i = 0; i < inputs; ++i) {
      if (action.writes[i] == no_slot) continue;
      if (holds_sums(action.writes[i]))
        call.input_gradient_terms[i] = matrix<State>(rows_in(), layer.in);
      else
        call.input_gradients[i] = matrix_beside(rows_in(), layer.in, action.writes[i],
                                                action.reads[0], call.output_gradient);
    }
    if (action.reads[1 + inputs] != no_slot) call.output = matrix(rows_out(), layer.out);
    if (action.reads[2 + inputs] != no_slot)
      call.kept = matrix<State>(rows_out(), row_of(layer).kept_columns);
    call.add_input_gradients = action.adds;
    const bool weights = action.kind != ActionKind::backward_inputs;
    for (std::size_t p = 0; weights && p < layer.parameters.size(); ++p)
      call.parameter_gradients[p] = vector<State>(num_elements(layer.parameters[p].shape));
    return call;
  }

  std::function<void()> redistribution() {
    const Slot& from = slot(planned_.action->reads[0]);
    const Slot& to = slot(planned_.action->writes[0]);
    const Communicator& ranks = *ranks_;
    const Shape group{work_.size, from.shape[1]};
    const Placement before = from.along_model, after = to.along_model;
    const auto block = [&](Placement placement) {
      return num_elements(parameter_block(group, placement, ranks.size(), ranks.rank()).extent);
    };
    const Size packed = packed_elements(before, after, group, ranks.size(), ranks.rank());
    const auto run = [=](const auto& source, const auto& target, const auto& room) {
      return [=] { redistribute_along(ranks, before, after, group, source, target, room); };
    };
    if (holds_sums(planned_.action->reads[0]))
      return run(vector<State>(block(before)), vector<State>(block(after)), vector<State>(packed));
    return run(vector(block(before)), vector(block(after)), vector(packed));
  }

  /// Every stage sends to the next one at the same time, the last one to the first, and waits for
  /// both: a message moves only while its sender and its receiver are inside MPI.
  std::function<void()> messages() {
    const Communicator& ranks = *ranks_;
    const int next = (ranks.rank() + 1) % ranks.size();
    const int before = (ranks.rank() + ranks.size() - 1) % ranks.size();
    return [=, out = vector(elements()), in = vector(elements())] {
      Request arrives = ranks.ireceive(in, before, 0);
      Request leaves = ranks.isend(out, next, 0);
      arrives.wait();
      leaves.wait();
    };
  }

  std::function<void()> call() {
    const Communicator& ranks = *ranks_;
    if (work_.shape == name_of(DType::float64) && dtype_of<T>() != DType::float64)
      return [ranks, sum = sums_] { ranks.all_reduce(sum); };
    if (work_.kind == WorkKind::all_gather)
      return [=, all = vector(elements()), this] { ranks.all_gather(share_of(all), all); };
    const Vector<State> all = vector<State>(sums());
    if (work_.kind == WorkKind::all_reduce) return [=] { ranks.all_reduce(all); };
    if (!is_sharded()) return [=] { ranks.reduce_scatter(all); };
    const Vector<State> out = vector<State>(static_cast<Size>(share_of(all).extent(0)));
    return [=] { ranks.reduce_scatter(all, out); };
  }

  PlannedWork planned_;
  const PlanInput& input_;
  const Work& work_;
  const StagePlan& stage_;
  Gemm<T> gemm_;
  Vector<double> sums_;
  std::optional<Communicator> ranks_;
  std::vector<std::function<void()>> refills_;  ///< of the memory above
};

template <class T>
WorkRun make_typed(const PlannedWork& planned, const Mesh& mesh) {
  const auto operands = std::make_shared<WorkOperands<T>>(planned, mesh);
  WorkRun run;
  run.start = operands->start();
  if (!run.start) run.once = operands->once();
  run.is_fresh = planned.work.kind == WorkKind::redistribute;
  run.refresh = [operands] { operands->refresh(); };
  return run;
}

}  // namespace

WorkRun make_work_run(const PlannedWork& planned, const Mesh& mesh) {
  return with_compute_type(planned.of->plan.input.compute_type,
                           [&](auto t) { return make_typed<decltype(t)>(planned, mesh); });
}

}  // namespace tessera::bench
