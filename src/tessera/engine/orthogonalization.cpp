// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/alias.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/engine/draw_parameters.hpp>
#include <tessera/engine/orthogonalization.hpp>

namespace tessera {
namespace {

/// Copies elements to their places in a matrix, or, if `back`, from there.
template <class T>
void copy_part(T* elements, T* matrix, Size count, const BlockRun& place, bool back) {
  for_each(
      "tessera::copy_direction"_label, count, KOKKOS_LAMBDA(Size i) {
        if (back)
          elements[i] = matrix[place(i)];
        else
          matrix[place(i)] = elements[i];
      });
}

}  // namespace

template <class T>
Orthogonalization<T>::Orthogonalization(const Plan& plan, Size rank,
                                        const PlanCommunicators& communicators)
    : communicators_(communicators),
      model_(plan.input.mesh.axes_named({"model"})),
      coordinate_(plan.input.mesh.coordinate(rank, "model")),
      scratch_(orthogonalization_scratch(plan, rank)),
      held_(allocate_zeros<T>("tessera::orthogonalization", scratch_.held)),
      own_(allocate_zeros<T>("tessera::orthogonalization", scratch_.own)),
      newton_schulz_(scratch_.products, plan.input.numerics.reproducible) {
  const MeshShape& mesh = plan.input.mesh;
  const ParameterLayout& layout = plan.stage(rank).parameters;
  const StatePlan state = plan.state(rank);
  for (Size b = 0; b < std::ssize(layout.buckets); ++b) {
    if (layout.buckets[b].matrices.empty()) continue;
    Bucket& bucket = buckets_[b] = {plan_matrices(plan, b, rank),
                                    state.buckets[b],
                                    layout.buckets[b].updates.axes,
                                    scratch_.places[b],
                                    {}};
    for (const Size p : bucket.plan.matrices) {
      const ParameterPlan& parameter = layout.parameters[p];
      Matrix& matrix = bucket.matrices.emplace_back(Matrix{parameter.shape[0], parameter.shape[1]});
      const bool is_whole = parameter.cuts.empty();
      matrix.own = is_whole ? 0 : coordinate_;
      for (Size m = 0; m < (is_whole ? 1 : mesh.size_of("model")); ++m) {
        const Piece piece = plan.piece(mesh.rank_at("model", m), parameter);
        const Size at = bucket.plan.pieces == 1 ? 0 : is_whole ? coordinate_ : m;
        matrix.parts.push_back({{bucket.at.held + at * bucket.plan.held.count +
                                     parameter.place.begin - bucket.plan.held.begin,
                                 num_elements(piece.extent)},
                                run_of(parameter.shape, piece, 0)});
      }
    }
  }
}

/// Returns the memory of a bucket's matrices, of all pieces.
template <class T>
Vector<T> Orthogonalization<T>::held(const Bucket& of) const {
  return alias_vector(held_.data() + of.at.held, of.plan.pieces * of.plan.held.count);
}

/// Returns those elements that this rank has before it gathers pieces.
template <class T>
Vector<T> Orthogonalization<T>::own(const Bucket& of) const {
  const Size piece = of.plan.pieces > 1 ? coordinate_ : 0;
  return alias_vector(held(of).data() + piece * of.plan.held.count, of.plan.held.count);
}

template <class T>
Vector<T> Orthogonalization<T>::directions(Size bucket, Range elements) const {
  const Bucket& of = buckets_.at(bucket);
  T* const begin = of.plan.sent.empty() ? own(of).data() - of.plan.held.begin
                                        : own_.data() + of.at.own - of.place.share.begin;
  return alias_vector(begin + elements.begin, elements.count);
}

template <class T>
void Orthogonalization<T>::move(const MoveDirections& move) const {
  const Bucket& of = buckets_.at(move.bucket);
  const Communicator& ranks = communicators_[move.ranks];
  const Vector<T> share = directions(move.bucket, of.place.share), whole = own(of);
  if (move.operation == Operation::all_to_all) {
    if (move.back) return ranks.all_to_all(whole, of.plan.received, share, of.plan.sent);
    return ranks.all_to_all(share, of.plan.sent, whole, of.plan.received);
  }
  if (move.ranks == model_) return ranks.all_gather(whole, held(of));
  if (move.ranks == of.updates)
    return ranks.all_gather(directions(move.bucket, of.place.owned), share);
  ranks.all_gather(share, whole);
}

template <class T>
void Orthogonalization<T>::orthogonalize(Size bucket) const {
  for (const Matrix& of : buckets_.at(bucket).matrices) {
    const tessera::Matrix<T> matrix = newton_schulz_.matrix(of.rows, of.cols);
    for (const Part& part : of.parts)
      copy_part(held_.data() + part.elements.begin, matrix.data(), part.elements.count, part.place,
                false);
    newton_schulz_.orthogonalize(matrix);
    const Part& own = of.parts[of.own];
    copy_part(held_.data() + own.elements.begin, matrix.data(), own.elements.count, own.place,
              true);
  }
}

template class Orthogonalization<float>;
template class Orthogonalization<double>;

}  // namespace tessera
