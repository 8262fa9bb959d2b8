// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include <tessera/base/pair_tree.hpp>
#include <tessera/plan/layout/layer_placements.hpp>
#include <tessera/plan/plan_input.hpp>
#include <tessera/tensor/piece.hpp>

namespace tessera {

/// Returns the common elements of two ranges; if there are none, an empty range at the start of
/// `a`.
constexpr Range intersection(Range a, Range b) {
  const Size begin = a.begin > b.begin ? a.begin : b.begin;
  const Size end = a.end() < b.end() ? a.end() : b.end();
  return begin < end ? Range{begin, end - begin} : Range{a.begin, 0};
}

/// Returns true if muon orthogonalizes a parameter: a kernel of two dimensions, which is what
/// PyTorch's Muon takes, but for the one that makes the prediction.
bool is_orthogonalized(const PlanInput& input, Size layer, std::size_t parameter);

/// One parameter and its place in the flat buffer of its bucket. The place has the size of the
/// largest piece over all ranks of `model`, and smaller pieces are padded. So a bucket has the same
/// layout on all of these ranks, they all reduce a replicated element in the same order, and its
/// copies stay bitwise equal.
struct ParameterPlan {
  std::string path;
  Size layer = 0;   ///< index in the model
  Size number = 0;  ///< index in the layer
  Shape shape;      ///< global shape
  /// Each rank of `model` computes the gradient from its own rows only, so the gradient is Partial
  /// along `model` and is reduced there as well.
  bool partial_gradient = false;
  bool is_kernel = false;
  bool is_matrix = false;  ///< is_orthogonalized()
  bool is_copy = false;    ///< the first stage has the parameter too (UnitPlan::is_tied)
  double sign_rate = 0;    ///< ParameterSpec::sign_rate
  Cuts cuts{};             ///< by the axes that split the layer, `model` first
  AxisSet copies{};        ///< the axes along which ranks hold the same piece
  Range place{};           ///< elements with padding, counted from the start of the bucket
  Size bucket = 0;
};

/// The parameters of consecutive layers with the same unit name.
struct UnitPlan {
  std::string name;
  Range parameters{};  ///< positions in ParameterLayout::parameters
  Range layers{};      ///< indices in the model
  Range place{};       ///< elements with padding, counted from the start of the bucket
  /// From the first to the last element whose gradient is also reduced over `model`
  /// (ParameterPlan::partial_gradient), counted from the start of the bucket.
  Range partial_gradients{};
  /// The axes over which gradients are summed; none splits its parameters. MeshShape::repeats() is
  /// one of them if ranks of `model` repeat a part (Layout::repeats).
  AxisSet sums{};
  Size bucket = 0;
  /// A later layer uses its first parameter too (LayerSpec::tied_to). If that layer is on another
  /// stage, it has a copy of the unit there. The unit has a bucket of its own.
  bool is_tied = false;
};

/// A run of units whose gradients are reduced, and whose parameters are gathered, in one call: a
/// tensor of one dimension. Strategies shard buckets: each rank keeps one balanced part.
struct BucketPlan {
  Range units{};         ///< positions in ParameterLayout::units
  Size elements = 0;     ///< with padding
  AxisSet sums{};        ///< UnitPlan::sums of all its units
  Cut shares{};          ///< by the axes over which the strategy shards it, as one
  Cut updates{};         ///< of a share, by the axes over which only moments are sharded
  bool is_tied = false;  ///< UnitPlan::is_tied
  /// The layers of a stage whose gradients a fixed order sums apart, over the whole batch: two use
  /// a tied unit, as they do on two stages.
  Size uses = 1;
  std::vector<Range> matrices{};  ///< places of those that are orthogonalized
  bool splits_matrices = false;   ///< `model` splits one of them
  /// The coordinate along the axes of its shares of the rank that orthogonalizes each parameter,
  /// with MuonLayout::owner and exchange: runs of parameters, balanced by FLOPs. With exchange, a
  /// bucket begins with the rank behind the last one of the bucket before, if there are enough.
  std::vector<Size> owners{};
  /// Returns true if the matrices of the buckets before are orthogonalized first. Those of the
  /// others belong to other ranks, which compute at the same time.
  bool begins_orthogonalization() const { return owners.empty() || owners.front() == 0; }
  Cuts cuts() const { return {shares, updates}; }
  /// Returns the axes over which that is sharded which a rank keeps.
  AxisSet axes(Held held) const {
    if (held == Held::whole) return {};
    return held == Held::share ? shares.axes : axes_of(cuts());
  }
  /// Returns true if a move over these ranks is one of a share: each updates a part of it.
  bool moves_share(AxisSet ranks) const { return ranks != shares.axes; }
  /// Returns the axes of the ranks that keep the same elements; by default, that update them.
  AxisSet replicas(Held held = Held::owned) const { return sums - axes(held); }
  AxisSet summed_before{};  ///< axes over which each microbatch sums (sums_positions_first())
  /// Returns the axes of the ranks that sum the gradients of these elements.
  AxisSet summing() const { return replicas() - summed_before; }
  /// Returns the axes over which gradients are complete before their sum over `axes`: `expert`, if
  /// it splits the parameters, and those of the shares, if replicas sum these.
  AxisSet added_before(const MeshShape& mesh, AxisSet axes) const {
    return (batch_axes(mesh) - sums) | (axes == shares.axes ? AxisSet() : shares.axes);
  }
};

/// The parameters of the layers of a stage, in order. A unit is a run of parameters, and a bucket
/// is a run of units. If the strategy shards parameters, each bucket has one unit, or those of a
/// block (FsdpUnit). Otherwise the units of a chunk are joined up to `bucket_bytes`, beginning with
/// the last unit, whose gradient is ready first.
struct ParameterLayout {
  std::vector<ParameterPlan> parameters;
  std::vector<UnitPlan> units;
  std::vector<BucketPlan> buckets;
};
ParameterLayout lay_out_parameters(const PlanInput& input,
                                   const std::vector<LayerPlacements>& placed,
                                   const std::vector<Range>& chunks);

/// Returns "layer1", or "layer1..layer3" for several units.
std::string name_of(const BucketPlan& bucket, const std::vector<UnitPlan>& units);

/// The places of one bucket in the buffers of a rank, in elements.
struct BucketPlace {
  Range whole;  ///< the bucket in a flat buffer of whole buckets
  Range share;  ///< the rank's part, counted from the start of the bucket; all of it if not sharded
  Range owned;  ///< the part of the share that the rank updates, counted likewise
  Size share_begin = 0;     ///< start of the share in a flat buffer of shares
  Size owned_begin = 0;     ///< start of the owned part in a flat buffer of these
  Size gathered_begin = 0;  ///< start in the buffer of gathered parameters
  Size gradient_begin = 0;  ///< start in the buffer of whole gradients
  // If sums have a fixed order:
  Size uses = 1;        ///< BucketPlan::uses; each has a stack of rows of gradients
  Size stacks = 1;      ///< of a use: one for each rank whose samples reach the bucket
  Size nodes = 1;       ///< rows that the rank has at the end of a step
  Size share_rows = 1;  ///< the same of the sum over the ranks with the other shares
  /// Returns what the rank keeps, counted from the start of the bucket.
  Range part(Held held) const {
    return held == Held::whole ? Range{0, whole.count} : held == Held::share ? share : owned;
  }
};

/// The sizes of the buffers of parameters, gradients and moments on a rank, in elements.
///
/// A sharded role is one flat buffer of shares, the rank's parts of a balanced split of each
/// bucket. Any other role is one flat buffer of whole buckets. If parameters or gradients are
/// sharded, whole buckets are gathered or computed in a second buffer, which buckets use in turn.
/// With `prefetch` or `overlap` two consecutive buckets are alive at a time: one lies at the start
/// of that buffer, the other at its end. With a pipeline, or if units stay gathered, each bucket
/// has a place of its own. So has the bucket of a tied unit, which the first and the last layer
/// use.
struct StatePlan {
  Sharding sharding;
  bool reduces_every_microbatch = false;  ///< PlanInput::reduces_every_microbatch()
  bool has_copies = false;                ///< PlanInput::has_copies()
  std::vector<BucketPlace> buckets;
  Size whole = 0;                          ///< elements of all buckets
  Range grains{};                          ///< of the rank, if sums have a fixed order
  std::vector<Range> grains_of_experts{};  ///< those of all ranks along `expert`
  std::array<Range, 2> grains_of_uses{};   ///< those of two uses are places one after the other
  Size microbatches = 1;
  Size stack_rows = 1;        ///< rows of a stack of a tree of sums
  Size gradient_rows = 1;     ///< rows of whole gradients: one or several stacks
  Size second_use = 0;        ///< elements of the stack of a second use, behind these rows
  Size shares = 0;            ///< elements of all shares
  Size owned = 0;             ///< elements of what the rank updates of them
  Size gathered = 0;          ///< buffer of gathered parameters
  Size bucket_gradients = 0;  ///< buffer of whole gradients
  Size incoming = 0;          ///< share of one microbatch, before it is added to earlier ones
  Size matrices = 0;          ///< elements of moments() that have no second moment
  Size scatter_scratch = 0;   ///< scratch of a started reduce-scatter: shares of other ranks
  Size share_scratch = 0;     ///< the same of a share: what other ranks update

  Size elements(Held held) const {
    return held == Held::whole ? whole : held == Held::share ? shares : owned;
  }
  Size parameters() const { return elements(sharding.held_parameters(has_copies)); }
  Size copies() const { return has_copies ? elements(sharding.held_parameters(false)) : 0; }
  Size gradients() const { return elements(sharding.held_gradients()); }
  Size moments() const { return elements(sharding.held_moments()); }
  /// Returns the number of rows of gradients().
  Size rows_of_gradients() const {
    Size rows = sharding.gradients ? 1 : gradient_rows;
    for (const BucketPlace& bucket : buckets) rows = std::max(rows, bucket.share_rows);
    return rows;
  }
  /// Returns the number of elements of a row of whole gradients.
  Size whole_gradients() const { return sharding.gradients ? bucket_gradients : whole; }
  /// Returns the runs of grains whose gradients a bucket has, one for each stack.
  std::span<const Range> runs_of(Size bucket) const {
    if (buckets[bucket].stacks > 1) return grains_of_experts;
    return std::span(grains_of_uses).first(buckets[bucket].uses);
  }
  /// Returns the first row of a stack.
  Size first_row(Size bucket, Size stack) const {
    return stack * (buckets[bucket].uses > 1 ? gradient_rows : stack_rows);
  }
  /// Returns the row of the gradients of a microbatch: on top of those before it. A run adds no
  /// more microbatches than it has grains.
  Size row_of(Size microbatch, Size bucket, Size stack) const {
    const Range& run = runs_of(bucket)[stack];
    return first_row(bucket, stack) + nodes_in({run.begin, std::min(microbatch, run.count)});
  }
  /// Returns the place of the elements of `part`, elements of a bucket, that a flat buffer of what
  /// the rank keeps has; {0, 0} if there are none.
  Range place_of(Size bucket, Range part, Held held) const;
  /// Returns the place of the elements of `part` that this rank updates in the flat buffer of
  /// gradients; {0, 0} if there are none.
  Range owned_gradients(Size bucket, Range part) const;
};

/// Makes the plan of a rank. Rank 0 has the largest shares, the last rank of the mesh the smallest.
StatePlan plan_state(const PlanInput& input, const std::vector<BucketPlan>& buckets, Size rank);

}  // namespace tessera
