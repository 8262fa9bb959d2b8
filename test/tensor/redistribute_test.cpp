// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include <tessera/tensor/redistribute.hpp>

#include "device_data.hpp"
#include "tensor/placements.hpp"

namespace tessera {
namespace {

using test::to_device;
using test::to_host;
using namespace test::placements;
using Element = std::int64_t;
using Values = std::vector<Element>;

/// Element i of the term that the ranks with these coordinates along the Partial axes hold.
Element term(Size i, Size number) { return (i + 1) * 1009 + number * number * 31 * (i % 7 + 1); }

/// A tensor whose terms all differ, and the whole that they sum to.
struct Case {
  ShardedTensor<Element> tensor;
  Values whole;
};

Case make_case(const Mesh& mesh, const Shape& shape, const Placements& placements) {
  Size terms = 1;
  Size mine = 0;
  for (std::size_t a = 0; a < placements.size(); ++a) {
    if (!placements[a].is_partial()) continue;
    terms *= mesh.shape().axes()[a].size;
    mine = mine * mesh.shape().axes()[a].size + mesh.coordinates()[a];
  }
  Values own, whole;
  for (Size i = 0; i < num_elements(shape); ++i) {
    own.push_back(term(i, mine));
    whole.push_back(0);
    for (Size t = 0; t < terms; ++t) whole.back() += term(i, t);
  }
  Placements cut = placements;
  for (Placement& p : cut) p = p.is_partial() ? R : p;
  const auto block = from_global(mesh, shape, cut, to_device(own));
  // An own copy: the slice may share the memory of the array.
  return {{mesh, shape, placements, to_device(to_host(block.local()))}, whole};
}

/// The reference: collects every rank's block with one plain all_gather over the world and puts the
/// whole together on the host. Fails if replicas differ.
Values assemble(const ShardedTensor<Element>& tensor) {
  const Mesh& mesh = tensor.mesh();
  const MeshShape& shape = mesh.shape();
  std::vector<Size> counts;
  for (Size r = 0; r < shape.num_ranks(); ++r) {
    counts.push_back(
        num_elements(piece(tensor.global_shape(), cuts_of(tensor.placements()), shape, r).extent));
  }
  Size total = 0;
  for (const Size count : counts) total += count;
  const Vector<Element> all("all", static_cast<std::size_t>(total));
  if (mesh.world().size() == 1) {
    Kokkos::deep_copy(all, tensor.local());
  } else {
    mesh.world().all_gather(tensor.local(), all, counts);
  }
  const Values blocks = to_host(all);
  Values whole(static_cast<std::size_t>(num_elements(tensor.global_shape())), 0);
  auto next = blocks.begin();
  std::map<Size, Values> first_replica;
  for (Size r = 0; r < shape.num_ranks(); ++r) {
    const Values mine(next, next + counts[static_cast<std::size_t>(r)]);
    next += counts[static_cast<std::size_t>(r)];
    std::vector<Size> first = shape.coordinates(r);
    for (std::size_t a = 0; a < first.size(); ++a) {
      if (tensor.placements()[a].is_replicate()) first[a] = 0;
    }
    if (const Size original = shape.rank_at(first); original != r) {
      EXPECT_EQ(mine, first_replica.at(original)) << "replicas differ, rank " << r;
      continue;
    }
    first_replica[r] = mine;
    const GlobalIndex index(tensor.global_shape(),
                            piece(tensor.global_shape(), cuts_of(tensor.placements()), shape, r));
    for (std::size_t i = 0; i < mine.size(); ++i)
      whole[static_cast<std::size_t>(index(static_cast<Size>(i)))] += mine[i];
  }
  return whole;
}

/// The ledger that the plan predicts for this rank.
std::vector<LedgerRow> planned_rows(const Mesh& mesh, const Shape& shape, const Placements& from,
                                    const Placements& to) {
  Ledger ledger;
  for (const auto& step : plan_redistribute(shape, from, to, mesh.shape(), mesh.rank())) {
    if (const auto operation = operation_of(step.transition)) {
      ledger.axis(mesh.shape().axes()[step.axis].name)[static_cast<std::size_t>(*operation)].add(
          step.payload_elements * static_cast<Size>(sizeof(Element)));
    }
  }
  return ledger.rows();
}

void check(const Mesh& mesh, const Shape& shape, const Placements& from, const Placements& to) {
  SCOPED_TRACE(mesh.shape().to_string() + " " + to_string(shape) + " from " +
               to_string(from, mesh.shape()) + " to " + to_string(to, mesh.shape()));
  const Case c = make_case(mesh, shape, from);
  ASSERT_EQ(assemble(c.tensor), c.whole) << "the case itself is wrong";
  const Values before = to_host(c.tensor.local());
  mesh.world().ledger().reset();
  const ShardedTensor<Element> result = redistribute(c.tensor, to);
  EXPECT_EQ(mesh.world().ledger().rows(), planned_rows(mesh, shape, from, to));
  EXPECT_EQ(result.placements(), to);
  EXPECT_EQ(assemble(result), c.whole);
  EXPECT_EQ(to_host(c.tensor.local()), before) << "the input was overwritten";
}

// std::uniform_int_distribution may differ between libraries; all ranks and runs must agree.
Size below(std::mt19937_64& random, Size n) {
  return static_cast<Size>(random() % static_cast<std::uint64_t>(n));
}

Shape random_shape(std::mt19937_64& random) {
  Shape shape(static_cast<std::size_t>(below(random, 5)));
  for (Size& extent : shape)  // few empty ones: they hide mistakes
    extent = below(random, 15) == 0 ? 0 : 1 + below(random, shape.size() > 2 ? 5 : 13);
  return shape;
}

Placements random_placements(std::mt19937_64& random, std::size_t axes, std::size_t dimensions) {
  Placements placements(axes);
  for (Placement& p : placements) {
    const Size kind = below(random, 4);
    if (kind == 1) p = X;
    if (kind > 1 && dimensions > 0)
      p = Placement::shard(static_cast<int>(below(random, static_cast<Size>(dimensions))));
  }
  return placements;
}

TEST(Redistribute, GivesTheSameWholeForRandomTransitions) {
  CommOptions options;
  options.check_collectives = true;
  const Communicator world = Communicator::world(options);
  const Size ranks = world.size();
  std::mt19937_64 random(1);
  for (Size a = 1; a <= ranks; ++a)
    for (Size b = 1; b <= ranks / a; ++b) {
      if (ranks % (a * b) != 0) continue;
      const Mesh mesh(world, MeshShape({{"a", a}, {"b", b}, {"c", ranks / (a * b)}}));
      for (int repeat = 0; repeat < 40; ++repeat) {
        const Shape shape = random_shape(random);
        const Placements from = random_placements(random, 3, shape.size());
        Placements to = random_placements(random, 3, shape.size());
        for (std::size_t axis = 0; axis < 3; ++axis)
          if (to[axis] == X) to[axis] = from[axis];
        check(mesh, shape, from, to);
      }
    }
}

TEST(Redistribute, SharesMemoryWhereItCan) {
  const Communicator world = Communicator::world();
  const Mesh mesh(world, MeshShape({{"data", world.size()}, {"model", 1}}));
  const ShardedTensor<float> whole(mesh, {13, 3}, {R, R});
  EXPECT_EQ(redistribute(whole, {R, R}).local().data(), whole.local().data());
  EXPECT_EQ(redistribute(whole, {R, S1}).local().data(), whole.local().data());
  const auto rows = redistribute(whole, {S0, R});
  EXPECT_EQ(rows.local().data(), whole.local().data() + rows.piece().offset[0] * 3);
}

TEST(Redistribute, ReducesInPlaceWithoutOtherReferences) {
  const Communicator world = Communicator::world();
  const Mesh mesh(world, MeshShape({{"data", world.size()}}));
  Case c = make_case(mesh, {6, 5}, {X});
  const Values before = to_host(c.tensor.local());
  // The inner call returns an alias of the tensor.
  EXPECT_EQ(to_host(redistribute(redistribute(c.tensor, {X}), {R}).local()), c.whole);
  EXPECT_EQ(to_host(c.tensor.local()), before);
  const Element* memory = c.tensor.local().data();
  const auto reduced = redistribute(std::move(c.tensor), {R});
  EXPECT_EQ(reduced.local().data(), memory);
  EXPECT_EQ(to_host(reduced.local()), c.whole);
}

}  // namespace
}  // namespace tessera
