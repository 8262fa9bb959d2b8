// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <tessera/base/error.hpp>
#include <tessera/comm/scratch.hpp>
#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/optim/newton_schulz_products.hpp>
#include <tessera/plan/grains.hpp>
#include <tessera/plan/layout/units.hpp>

namespace tessera {
namespace {

/// In elements: at least 64 bytes in the types float32 and float64. Products read aligned operands
/// faster.
constexpr Size alignment = 16;
Size aligned(Size elements) { return (elements + alignment - 1) / alignment * alignment; }

/// Places buckets in one buffer, and returns its size. `alive` neighbours are in use at a time, and
/// share memory. One: each lies at the start; two: at the start and at the end in turn
/// (Scheduler::gather_before relies on it); `all_buckets`: one after the other. Tied buckets come
/// first and share nothing.
constexpr Size all_buckets = 0;
Size place_in_buffer(std::vector<BucketPlace>& places, const std::vector<BucketPlan>& buckets,
                     Size alive, Size BucketPlace::*begin) {
  const auto is_apart = [&](std::size_t b) { return alive == all_buckets || buckets[b].is_tied; };
  Size apart = 0, shared = 0, before = 0;
  for (std::size_t b = 0; b < places.size(); ++b) {
    const Size own = aligned(places[b].whole.count);
    if (is_apart(b)) {
      places[b].*begin = apart;
      apart += own;
    } else {
      shared = std::max(shared, alive == 2 ? before + own : own);
      before = own;
    }
  }
  for (std::size_t b = 0; b < places.size(); ++b)
    if (!is_apart(b))
      places[b].*begin =
          apart + (alive == 2 && b % 2 == 1 ? shared - aligned(places[b].whole.count) : 0);
  return apart + shared;
}

/// Returns the cuts of a parameter by the axes that split it. Columns, such as those of an expert,
/// that an index of the layer's expression does not number stay together.
Cuts cuts_of_parameter(const MeshShape& mesh, const LayerSpec& layer,
                       const LayerPlacements& placements, std::size_t p) {
  Cuts cuts;
  for (std::size_t a = mesh_axes.size(); a-- > 0;) {
    const Layout& along = placements.axes[a];
    if (!along.parameters[p].is_shard()) continue;
    const auto dimension = static_cast<std::size_t>(along.parameters[p].dim());
    cuts.push_back({.dimension = dimension,
                    .axes = {*mesh.find(mesh_axes[a].name)},
                    .unit = layer.parameters[p].shape[dimension] /
                            (along.units > 0 ? along.units : layer.total(along.split[0])),
                    .repeats = along.repeats,
                    .blocks = along.blocks});
  }
  return cuts;
}

void add_parameters(ParameterLayout& plan, const PlanInput& input, Size l,
                    const LayerPlacements& placements) {
  const LayerSpec& layer = input.model.layers[l];
  for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
    const Shape& shape = layer.parameters[p].shape;
    Cuts cuts = cuts_of_parameter(input.mesh, layer, placements, p);
    AxisSet sums = replicating_axes(input.mesh) - axes_of(cuts);
    if (std::any_of(cuts.begin(), cuts.end(), [](const Cut& cut) { return cut.repeats > 1; }))
      sums = sums | input.mesh.repeats();
    if (plan.units.empty() || plan.units.back().name != layer.unit ||
        plan.units.back().sums != sums)
      plan.units.push_back({.name = layer.unit,
                            .parameters = {static_cast<Size>(plan.parameters.size()), 0},
                            .layers = {l, 0},
                            .sums = sums});
    UnitPlan& unit = plan.units.back();
    unit.layers.count = l + 1 - unit.layers.begin;
    unit.is_tied = unit.is_tied || input.tied_layer() == l;
    const Size room = num_elements(piece(shape, cuts, input.mesh, 0).extent);
    plan.parameters.push_back(
        {.path = path_of(layer, layer.parameters[p]),
         .layer = l,
         .number = static_cast<Size>(p),
         .shape = shape,
         .partial_gradient = placements.along("model").parameter_gradients[p].is_partial(),
         .is_kernel = is_kernel(layer, p),
         .is_matrix = is_orthogonalized(input, l, p),
         .sign_rate = layer.parameters[p].sign_rate,
         .cuts = cuts,
         .copies = sums | (input.mesh.axes_named({"model"}) - axes_of(cuts)),
         .place = {0, room}});
    unit.place.count += room;
    ++unit.parameters.count;
  }
}

/// Adds a copy of the unit that a layer uses to the stage of the layer, unless the unit is there.
void add_copy(ParameterLayout& plan, const PlanInput& input, Size l,
              const std::vector<LayerPlacements>& placed) {
  const Size owner = input.model.layers[l].tied_to;
  const auto has_unit = [&](const ParameterPlan& parameter) { return parameter.layer == owner; };
  if (owner < 0 || std::any_of(plan.parameters.begin(), plan.parameters.end(), has_unit)) return;
  add_parameters(plan, input, owner, placed[owner]);
  UnitPlan& unit = plan.units.back();
  unit.layers = {l, 1};
  for (Size p = unit.parameters.begin; p < unit.parameters.end(); ++p)
    plan.parameters[p].is_copy = true;
}

/// Returns true if the predicate holds for a parameter of some units.
bool any_parameter(const ParameterLayout& plan, Range units, bool (*holds)(const ParameterPlan&)) {
  const auto begin = plan.parameters.begin();
  return std::any_of(begin + plan.units[units.begin].parameters.begin,
                     begin + plan.units[units.end() - 1].parameters.end(), holds);
}
bool is_matrix(const ParameterPlan& parameter) { return parameter.is_matrix; }
/// Tables, the head, experts and modes: buckets of matrices, whose directions move, have none.
bool is_large_other(const ParameterPlan& parameter) {
  return !parameter.is_matrix && parameter.shape.size() > 1;
}

/// Joins units into buckets, beginning with the last unit: those of a block if parameters are
/// sharded and FsdpUnit::block says so. A bucket does not cross chunks; `first_units` holds the
/// first unit of each chunk.
void fill_buckets(ParameterLayout& plan, const PlanInput& input,
                  const std::set<Size>& first_units) {
  const bool gathers = sharding_on(input.strategy, input.mesh).parameters;
  const auto block = [&](Size unit) {
    return block_of(input.model.layers[plan.units[unit].layers.begin]);
  };
  const AxisSet sharding = shard_axes(input.strategy, input.mesh),
                updating = moment_axes(input, input.mesh) - sharding;
  for (Size u = static_cast<Size>(plan.units.size()) - 1; u >= 0; --u) {
    const Size elements = plan.units[u].place.count;
    const bool joins =
        !plan.buckets.empty() && !first_units.contains(u + 1) && !plan.units[u].is_tied &&
        !plan.buckets.back().is_tied && plan.buckets.back().sums == plan.units[u].sums &&
        !(any_parameter(plan, {u, plan.buckets.back().units.count + 1}, is_matrix) &&
          any_parameter(plan, {u, plan.buckets.back().units.count + 1}, is_large_other)) &&
        (gathers ? input.fsdp_unit == FsdpUnit::block && block(u) == block(u + 1)
                 : (plan.buckets.back().elements + elements) * size_of(input.state_type) <=
                       input.bucket_bytes);
    if (!joins) {
      const AxisSet sums = plan.units[u].sums;
      plan.buckets.push_back(
          {{u, 0}, 0, sums, {0, sums & sharding}, {0, sums & updating}, plan.units[u].is_tied});
    }
    BucketPlan& bucket = plan.buckets.back();
    if (bucket.is_tied && input.sums_uses_apart()) bucket.uses = 2;
    if (input.sums_positions_first()) bucket.summed_before = input.mesh.axes_named({"context"});
    bucket.units = {u, bucket.units.count + 1};
    bucket.elements += elements;
  }
  std::reverse(plan.buckets.begin(), plan.buckets.end());
}

/// Returns BucketPlan::owners, beginning with `first` if there are enough ranks from it on. Biases
/// and norms go with the matrix before them.
std::vector<Size> choose_owners(const ParameterLayout& plan, Range parameters, Size ranks,
                                Size first) {
  std::vector<double> middles;
  double flops = 0, middle = 0;
  for (Size p = parameters.begin; p < parameters.end(); ++p) {
    const ParameterPlan& parameter = plan.parameters[p];
    const double own = parameter.is_matrix ? newton_schulz_flops(parameter.shape) : 0;
    if (own > 0) middle = flops + own / 2;
    if (own > 0 && flops == 0) std::fill(middles.begin(), middles.end(), middle);
    middles.push_back(middle);
    flops += own;
  }
  const auto parts = static_cast<double>(ranks);
  std::vector<Size> owners;
  for (const double of : middles) owners.push_back(static_cast<Size>(parts * of / flops));
  const Size unused = owners.front(), begin = owners.back() - unused + first < ranks ? first : 0;
  for (Size& owner : owners) owner += begin - unused;
  return owners;
}

/// Pads the places of a bucket's parameters, so that the balanced shares of ranks begin where the
/// parameters of their owners do.
void pad_for_owners(BucketPlan& bucket, ParameterPlan* first, Size ranks) {
  const std::vector<Size>& owners = bucket.owners;
  std::vector<Size> elements(static_cast<std::size_t>(ranks));
  for (std::size_t p = 0; p < owners.size(); ++p) elements[owners[p]] += first[p].place.count;
  const Size share = *std::max_element(elements.begin(), elements.end());
  for (std::size_t p = 0; p < owners.size(); ++p)
    if (const Size next = p + 1 < owners.size() ? owners[p + 1] : ranks; next > owners[p])
      first[p].place.count += (next - owners[p]) * share - elements[owners[p]];
  bucket.elements = ranks * share;
}

/// Places units and parameters in their buckets, one after the other.
void place(ParameterLayout& plan, const PlanInput& input) {
  Size owner = 0;
  for (Size b = 0; b < static_cast<Size>(plan.buckets.size()); ++b) {
    BucketPlan& bucket = plan.buckets[b];
    const Range units = bucket.units;
    Size at = 0;
    if (input.muon_layout != MuonLayout::gather && any_parameter(plan, units, is_matrix)) {
      const Size ranks = input.mesh.group_size(bucket.shares.axes);
      const Size begin = plan.units[units.begin].parameters.begin;
      const Range parameters{begin, plan.units[units.end() - 1].parameters.end() - begin};
      bucket.owners = choose_owners(plan, parameters, ranks, owner);
      if (input.muon_layout == MuonLayout::owner)
        pad_for_owners(bucket, &plan.parameters[begin], ranks);
      else
        owner = (bucket.owners.back() + 1) % ranks;
    }
    for (Size u = units.begin; u < units.end(); ++u) {
      UnitPlan& unit = plan.units[u];
      unit.bucket = b;
      unit.place.begin = at;
      for (Size p = unit.parameters.begin; p < unit.parameters.end(); ++p) {
        ParameterPlan& parameter = plan.parameters[p];
        parameter.bucket = b;
        parameter.place.begin = at;
        at += parameter.place.count;
        if (parameter.is_matrix) {
          bucket.matrices.push_back(parameter.place);
          bucket.splits_matrices = bucket.splits_matrices || !parameter.cuts.empty();
        }
        if (!parameter.partial_gradient) continue;
        Range& partial = unit.partial_gradients;
        if (partial.count == 0) partial.begin = parameter.place.begin;
        if (partial.end() != parameter.place.begin)
          throw Error(ExitCode::usage,
                      "model: unit {}: the gradients of {} and of parameters before it are summed "
                      "over model, but not those between; give it a unit of its own",
                      unit.name, parameter.path);
        partial.count = at - partial.begin;
      }
    }
  }
}

/// Plans the rows of gradients whose sums have a fixed order.
void plan_rows(StatePlan& state, const PlanInput& input, const std::vector<BucketPlan>& buckets,
               Size rank) {
  const MeshShape& mesh = input.mesh;
  for (const Size of : mesh.group(mesh.axes_named({"expert"}), rank))
    state.grains_of_experts.push_back(grains_at(input, batch_coordinate(input, of)));
  state.grains = grains_at(input, batch_coordinate(input, rank));
  state.microbatches = input.microbatches;
  for (const Range& run : state.grains_of_experts)
    for (Size m = 0; m < input.microbatches; ++m)
      state.stack_rows =
          std::max(state.stack_rows, nodes_in({run.begin, std::min(m, run.count)}) + 1);
  state.grains_of_uses = {state.grains,
                          Range{input.numerics.grains + state.grains.begin, state.grains.count}};
  std::map<std::pair<AxisSet, Size>, Size> rows;
  const auto rows_over = [&](AxisSet axes, Size uses) {
    const auto [found, is_new] = rows.try_emplace({axes, uses}, 0);
    if (is_new) found->second = static_cast<Size>(nodes_over(input, axes, uses, rank).size());
    return found->second;
  };
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    BucketPlace& place = state.buckets[b];
    const AxisSet before = buckets[b].added_before(mesh, buckets[b].shares.axes);
    place.uses = buckets[b].uses;
    place.stacks = mesh.group_size(before);
    place.nodes = rows_over(before, place.uses);
    place.share_rows = rows_over(before | buckets[b].shares.axes, place.uses);
    if (place.uses > 1) state.second_use = state.stack_rows * buckets[b].elements;
    state.gradient_rows = std::max({state.gradient_rows, place.stacks * state.stack_rows,
                                    place.nodes, state.sharding.gradients ? 1 : place.share_rows});
  }
}

/// Returns the scratch of a started reduce-scatter over `axes` of `whole` elements of a bucket, of
/// which a rank keeps `part` and has `own` rows: the rows that it receives.
Size scratch_of(const PlanInput& input, const BucketPlan& bucket, AxisSet axes, Size whole,
                Size part, Size own, Size rank) {
  const Size ranks = input.mesh.group_size(axes);
  if (reduce_scatter_scratch(whole, part, ranks, input.state_type) == 0) return 0;
  Size rows = 0;
  if (input.numerics.reproducible)
    for (const auto& nodes : gradient_nodes(input, bucket, axes, rank))
      rows += static_cast<Size>(nodes.size());
  return std::max(rows - own, ranks - 1) * part;
}

}  // namespace

ParameterLayout lay_out_parameters(const PlanInput& input,
                                   const std::vector<LayerPlacements>& placed,
                                   const std::vector<Range>& chunks) {
  ParameterLayout plan;
  std::set<Size> first_units;
  for (const Range& layers : chunks) {
    first_units.insert(static_cast<Size>(plan.units.size()));
    for (Size l = layers.begin; l < layers.end(); ++l) {
      add_parameters(plan, input, l, placed[l]);
      add_copy(plan, input, l, placed);
    }
  }
  fill_buckets(plan, input, first_units);
  place(plan, input);
  return plan;
}

bool is_orthogonalized(const PlanInput& input, Size layer, std::size_t parameter) {
  const std::vector<LayerSpec>& layers = input.model.layers;
  const auto has_kernel = [](const LayerSpec& of) {
    return of.tied_to >= 0 || (!of.parameters.empty() && is_kernel(of, 0));
  };
  return input.orthogonalizes && layers[layer].parameters[parameter].shape.size() == 2 &&
         is_kernel(layers[layer], parameter) &&
         std::any_of(layers.begin() + layer + 1, layers.end(), has_kernel);
}

std::string name_of(const BucketPlan& bucket, const std::vector<UnitPlan>& units) {
  const std::string& first = units[bucket.units.begin].name;
  if (bucket.units.count == 1) return first;
  return first + ".." + units[bucket.units.end() - 1].name;
}

Range StatePlan::place_of(Size bucket, Range part, Held held) const {
  const BucketPlace& place = buckets[bucket];
  const Range kept = place.part(held), own = intersection(part, kept);
  if (own.count == 0) return {};
  const Size begin = held == Held::whole   ? place.whole.begin
                     : held == Held::share ? place.share_begin
                                           : place.owned_begin;
  return {begin + own.begin - kept.begin, own.count};
}

Range StatePlan::owned_gradients(Size bucket, Range part) const {
  return place_of(bucket, intersection(part, buckets[bucket].owned), sharding.held_gradients());
}

StatePlan plan_state(const PlanInput& input, const std::vector<BucketPlan>& buckets, Size rank) {
  StatePlan state;
  state.sharding = sharding_on(input.strategy, input.mesh);
  state.reduces_every_microbatch = input.reduces_every_microbatch();
  state.has_copies = input.has_copies();
  Size largest_share = 0;
  for (const BucketPlan& bucket : buckets) {
    BucketPlace place;
    place.whole = {state.whole, bucket.elements};
    Piece own = piece({bucket.elements}, {bucket.shares}, input.mesh, rank);
    place.share = {own.offset[0], own.extent[0]};
    apply(bucket.updates, own, input.mesh, rank);
    place.owned = {own.offset[0], own.extent[0]};
    place.share_begin = state.shares;
    place.owned_begin = state.owned;
    state.whole += place.whole.count;
    state.shares += place.share.count;
    state.owned += place.owned.count;
    for (const Range& matrix : bucket.matrices)
      state.matrices += intersection(matrix, place.owned).count;
    largest_share = std::max(largest_share, place.share.count);
    state.buckets.push_back(place);
  }
  if (input.numerics.reproducible) plan_rows(state, input, buckets, rank);
  if (state.sharding.parameters) {
    const bool keeps = !input.reshard_after_forward || input.has_stages();
    const Size alive = keeps ? all_buckets : input.prefetch ? 2 : 1;
    state.gathered = place_in_buffer(state.buckets, buckets, alive, &BucketPlace::gathered_begin);
  }
  for (std::size_t b = 0; state.sharding.moments && input.overlap && b < buckets.size(); ++b) {
    const BucketPlan& of = buckets[b];
    const BucketPlace& place = state.buckets[b];
    const Size share = place.share.count;
    state.scatter_scratch = std::max(
        state.scatter_scratch,
        scratch_of(input, of, of.shares.axes, place.whole.count, share, place.nodes, rank));
    state.share_scratch = std::max(
        state.share_scratch,
        scratch_of(input, of, of.updates.axes, share, place.owned.count, place.share_rows, rank));
  }
  if (state.sharding.gradients) {
    const bool keeps = input.has_stages() || input.sums_microbatches_in_tree();
    const Size alive = keeps ? all_buckets : input.overlap ? 2 : 1;
    state.bucket_gradients =
        place_in_buffer(state.buckets, buckets, alive, &BucketPlace::gradient_begin);
    if (input.microbatches > 1 && state.reduces_every_microbatch) state.incoming = largest_share;
  }
  return state;
}

}  // namespace tessera
