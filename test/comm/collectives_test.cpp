// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include <tessera/base/pair_tree.hpp>
#include <tessera/base/split.hpp>

#include "comm/comm_test_support.hpp"

namespace tessera {
namespace {

using test::all_ways;
using test::make_vector;
using test::to_host;
using test::value_of;

template <class T>
class Collectives : public testing::Test {};
using ReducedTypes = testing::Types<float, double, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(Collectives, ReducedTypes);

template <class T>
class MovingCollectives : public testing::Test {};
using MovedTypes = testing::Types<float, double, std::int32_t, std::int64_t, BFloat16, Float16>;
TYPED_TEST_SUITE(MovingCollectives, MovedTypes);

/// Calls f(communicator, extent) for all ways, with extents near the number of ranks and near the
/// sizes of pieces.
template <class F>
void for_all_ways(const F& f) {
  for (const CommOptions& way : all_ways()) {
    const Communicator comm = Communicator::world(way);
    for (const Size n : {0, 1, 2, 3, 7, 8, 23, 64}) f(comm, n);
  }
}

template <class T>
Vector<T> own(Size n, int rank) {
  return make_vector<T>(n, [&](Size i) { return value_of<T>(i, rank); });
}

template <class T>
std::vector<T> reduced(Size n, int size, ReduceOp op = ReduceOp::sum) {
  std::vector<T> result(static_cast<std::size_t>(n));
  for (Size i = 0; i < n; ++i) {
    T x = value_of<T>(i, 0);
    for (int r = 1; r < size; ++r) {
      const T y = value_of<T>(i, r);
      x = op == ReduceOp::sum ? x + y : op == ReduceOp::max ? std::max(x, y) : std::min(x, y);
    }
    result[static_cast<std::size_t>(i)] = x;
  }
  return result;
}

template <class T>
std::vector<T> part(const std::vector<T>& all, Range range) {
  return {all.begin() + range.begin, all.begin() + range.end()};
}

TYPED_TEST(Collectives, AllReduceGivesEveryRankTheReduction) {
  using T = TypeParam;
  for_all_ways([](const Communicator& comm, Size n) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
      const auto v = own<T>(n, comm.rank()), w = own<T>(n, comm.rank());
      comm.all_reduce(v, op);
      comm.iall_reduce(w, op).wait();
      for (const auto& x : {v, w}) EXPECT_EQ(to_host(x), reduced<T>(n, comm.size(), op));
    }
  });
}

TYPED_TEST(Collectives, ReduceScatterGivesEveryRankItsBalancedShare) {
  using T = TypeParam;
  for_all_ways([](const Communicator& comm, Size n) {
    const Range share = balanced_split(n, comm.size(), comm.rank());
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
      const auto expected = part(reduced<T>(n, comm.size(), op), share);
      const auto in = own<T>(n, comm.rank()), v = own<T>(n, comm.rank());
      const Vector<T> out("out", static_cast<std::size_t>(share.count)),
          late("late", out.extent(0));
      comm.reduce_scatter(in, out, op);
      comm.ireduce_scatter(in, late, op).wait();
      for (const auto& x : {out, late}) EXPECT_EQ(to_host(x), expected);
      EXPECT_EQ(to_host(in), to_host(v)) << "the input must stay";
      comm.reduce_scatter(v, op);
      for (Request request = comm.ireduce_scatter(in, op); !request.test();) {
      }
      for (const auto& x : {v, in}) EXPECT_EQ(part(to_host(x), share), expected);
    }
  });
}

template <class T>
class SumsOfHalves : public testing::Test {};
using Halves = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(SumsOfHalves, Halves);

/// As in PyTorch: in bfloat16, 256 + 1 is 256 and 258 + 1 is 260; in float16, 2048 + 1 is 2048 and
/// 2050 + 1 is 2052. Ranks beyond the second add 0, so that every order gives the same sum.
TYPED_TEST(SumsOfHalves, AreRounded) {
  using T = TypeParam;
  const float large = std::is_same_v<T, BFloat16> ? 256 : 2048;
  for_all_ways([&](const Communicator& comm, Size n) {
    const auto term = [&](Size i) {
      const float first = large + 2 * static_cast<float>(i % 2);
      return T(comm.rank() == 0 ? first : comm.rank() == 1 ? 1.0F : 0.0F);
    };
    std::vector<float> expected;
    for (Size i = 0; i < n; ++i)
      expected.push_back(large + (i % 2 == 0 ? 0 : comm.size() > 1 ? 4 : 2));
    const Range share = balanced_split(n, comm.size(), comm.rank());
    const auto floats = [](const std::vector<T>& v) {
      return std::vector<float>(v.begin(), v.end());
    };
    const auto v = make_vector<T>(n, term), w = make_vector<T>(n, term);
    const Vector<T> out("out", static_cast<std::size_t>(share.count)), late("late", out.extent(0));
    comm.reduce_scatter(v, out);
    comm.ireduce_scatter(w, late).wait();
    for (const auto& x : {out, late}) EXPECT_EQ(floats(to_host(x)), part(expected, share));
    comm.all_reduce(v);
    comm.iall_reduce(w).wait();
    for (const auto& x : {v, w}) EXPECT_EQ(floats(to_host(x)), expected);
  });
}

TYPED_TEST(MovingCollectives, AllGatherPutsTheSharesInOrder) {
  using T = TypeParam;
  for_all_ways([](const Communicator& comm, Size n) {
    const Range share = balanced_split(n, comm.size(), comm.rank());
    const auto all = make_vector<T>(
        n, [&](Size i) { return i >= share.begin && i < share.end() ? value_of<T>(i, 0) : T(-1); });
    const auto in = Kokkos::subview(all, std::pair(share.begin, share.end()));
    const Vector<T> out("out", static_cast<std::size_t>(n)), late("late", out.extent(0));
    comm.all_gather(in, out);
    comm.iall_gather(in, late).wait();
    comm.all_gather(in, all);
    for (const auto& v : {out, late, all}) EXPECT_EQ(to_host(v), to_host(own<T>(n, 0)));
  });
}

/// Rank r has 2r elements, so the share of rank 0 is empty.
TYPED_TEST(Collectives, SharesMayBeGiven) {
  using T = TypeParam;
  for (const CommOptions& way : all_ways()) {
    const Communicator comm = Communicator::world(way);
    std::vector<Size> counts;
    for (Size rank = 0; rank < comm.size(); ++rank) counts.push_back(2 * rank);
    const Size n = std::accumulate(counts.begin(), counts.end(), Size{0});
    const Range own_share{std::accumulate(counts.begin(), counts.begin() + comm.rank(), Size{0}),
                          2 * comm.rank()};
    const auto in = own<T>(n, comm.rank());
    for (const bool blocking : {true, false}) {
      const Vector<T> share("share", static_cast<std::size_t>(own_share.count));
      const Vector<T> all("all", static_cast<std::size_t>(n));
      if (blocking) {
        comm.reduce_scatter(in, share, ReduceOp::sum, counts);
        comm.all_gather(share, all, counts);
      } else {
        comm.ireduce_scatter(in, share, ReduceOp::sum, counts).wait();
        comm.iall_gather(share, all, counts).wait();
      }
      EXPECT_EQ(to_host(share), part(reduced<T>(n, comm.size()), own_share));
      EXPECT_EQ(to_host(all), reduced<T>(n, comm.size()));
    }
  }
}

TYPED_TEST(MovingCollectives, BroadcastGivesEveryRankTheRootsValues) {
  using T = TypeParam;
  for_all_ways([](const Communicator& comm, Size n) {
    for (int root = 0; root < comm.size(); ++root) {
      const auto v = own<T>(n, comm.rank());
      comm.broadcast(v, root);
      EXPECT_EQ(to_host(v), to_host(own<T>(n, root)));
    }
  });
}

// Rank i sends (i + 2 j) mod 5 elements to rank j, each of them 100 i + j: some parts are empty.
TYPED_TEST(MovingCollectives, AllToAllExchangesUnevenParts) {
  using T = TypeParam;
  for (const CommOptions& way : all_ways()) {
    const Communicator comm = Communicator::world(way);
    std::vector<Size> sent, received;
    std::vector<T> in, expected;
    for (int other = 0; other < comm.size(); ++other) {
      sent.push_back((comm.rank() + 2 * other) % 5);
      received.push_back((other + 2 * comm.rank()) % 5);
      in.insert(in.end(), sent.back(), static_cast<T>(100 * comm.rank() + other));
      expected.insert(expected.end(), received.back(), static_cast<T>(100 * other + comm.rank()));
    }
    const auto from = make_vector<T>(std::ssize(in), [&](Size i) { return in[i]; });
    const Vector<T> to("to", expected.size());
    comm.all_to_all(from, sent, to, received);
    EXPECT_EQ(to_host(to), expected);
  }
}

// Messages around a ring, with tags out of order and collectives in between.
TEST(Messages, MeetByRankAndTagAndDoNotDisturbCollectives) {
  for_all_ways([](const Communicator& comm, Size n) {
    if (comm.size() == 1) return;
    const int next = (comm.rank() + 1) % comm.size();
    const int previous = (comm.rank() + comm.size() - 1) % comm.size();
    const Vector<float> a("a", static_cast<std::size_t>(n)), b("b", a.extent(0));
    std::vector<Request> requests;
    requests.push_back(comm.ireceive(a, previous, 1));
    requests.push_back(comm.ireceive(b, previous, 2));
    const auto v = own<float>(n, comm.rank());
    comm.all_reduce(v);
    requests.push_back(comm.isend(own<float>(n, comm.rank() + 10), next, 2));
    requests.push_back(comm.isend(own<float>(n, comm.rank()), next, 1));
    for (Request& request : requests) request.wait();
    EXPECT_EQ(to_host(a), to_host(own<float>(n, previous)));
    EXPECT_EQ(to_host(b), to_host(own<float>(n, previous + 10)));
    if (comm.rank() % 2 == 0 && comm.rank() + 1 < comm.size()) comm.send(v, next, 3);
    if (comm.rank() % 2 == 0) return;
    comm.receive(a, previous, 3);
    EXPECT_EQ(to_host(a), reduced<float>(n, comm.size()));
  });
}

TYPED_TEST(Collectives, SeveralRequestsAreInFlightAtOnce) {
  using T = TypeParam;
  for (const CommOptions& way : all_ways()) {
    const Communicator comm = Communicator::world(way);
    std::vector<Vector<T>> views;
    std::vector<Request> requests;
    for (const Size n : {0, 3, 23, 64}) {
      views.push_back(own<T>(n, comm.rank()));
      requests.push_back(comm.iall_reduce(views.back()));
    }
    for (auto request = requests.rbegin(); request != requests.rend(); ++request) {
      while (!request->test()) {
      }
    }
    for (const auto& v : views)
      EXPECT_EQ(to_host(v), reduced<T>(static_cast<Size>(v.size()), comm.size()));
  }
}

/// Terms whose sum depends on the order.
template <class T>
Vector<T> terms(Size n, int rank, Size first = 0) {
  return make_vector<T>(n, [&](Size i) {
    return T(1) / static_cast<T>(3 + 7 * (i + first) + 11 * rank) *
           static_cast<T>(rank % 3 == 0 ? 1000 : 1);
  });
}

/// The sum of terms() over places [begin, begin + count), a power of two, as a tree.
template <class T>
std::vector<T> tree_sum(Size n, int begin, int count, Size first = 0) {
  if (count == 1) return to_host(terms<T>(n, begin, first));
  std::vector<T> sum = tree_sum<T>(n, begin, count / 2, first);
  const std::vector<T> other = tree_sum<T>(n, begin + count / 2, count / 2, first);
  std::transform(sum.begin(), sum.end(), other.begin(), sum.begin(), std::plus<>());
  return sum;
}

/// The sums of nodes as rows, and room for so many.
template <class T>
Vector<T> rows_of(const std::vector<Range>& nodes, Size n, Size stride, Size room) {
  std::vector<std::vector<T>> sums;
  for (const Range& node : nodes)
    sums.push_back(tree_sum<T>(n, static_cast<int>(node.begin), static_cast<int>(node.count)));
  return make_vector<T>(room * stride, [&](Size i) {
    const auto row = static_cast<std::size_t>(i / stride);
    return row < sums.size() && i % stride < n ? sums[row][i % stride] : T(7);
  });
}

/// Sums what ranks have in these nodes, in all calls. `together`: the nodes of all of them.
template <class T>
void expect_tree(const Communicator& any_order, const std::vector<std::vector<Range>>& nodes,
                 const std::vector<Range>& together, Size n) {
  const auto own_rows = static_cast<Size>(nodes[any_order.rank()].size()),
             rows = static_cast<Size>(together.size()), room = std::max(own_rows, rows),
             stride = n + 3;
  const Range own = balanced_split(n, any_order.size(), any_order.rank());
  const Communicator ranks = any_order.in_tree({nodes, stride, stride});
  const auto make = [&] { return rows_of<T>(nodes[any_order.rank()], n, stride, room); };
  const auto first = [&](const Vector<T>& of) {
    return Kokkos::subview(of, std::pair(Size{0}, n));
  };
  const auto expect_share = [&](const Vector<T>& sums, Size begin) {
    for (Size row = 0; row < rows; ++row) {
      const Range& node = together[row];
      const auto sum = tree_sum<T>(n, static_cast<int>(node.begin), static_cast<int>(node.count));
      EXPECT_EQ(part(to_host(sums), {row * stride + begin, own.count}), part(sum, own)) << row;
    }
  };
  const Vector<T> in_place = make(), whole = make(), share("share", room * stride);
  ranks.reduce_scatter(first(in_place));
  expect_share(in_place, own.begin);
  ranks.reduce_scatter(first(whole), Kokkos::subview(share, std::pair(Size{0}, own.count)));
  expect_share(share, 0);
  if (rows > 1) return;
  const Vector<T> all = make(), started = make();
  const auto before = ranks.ledger().axis("world")[0].payload_bytes;
  ranks.all_reduce(first(all));
  if (any_order.size() > 1) {
    EXPECT_EQ(ranks.ledger().axis("world")[0].payload_bytes - before,
              own_rows * n * static_cast<Size>(sizeof(T)));
  }
  for (Request request = ranks.iall_reduce(first(started)); !request.test();) {
  }
  const auto sum = tree_sum<T>(n, 0, static_cast<int>(together[0].count));
  for (const auto& v : {all, started}) EXPECT_EQ(part(to_host(v), {0, n}), sum) << n;
}

template <class T>
class SumsInATree : public testing::Test {};
using RealTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(SumsInATree, RealTypes);

TYPED_TEST(SumsInATree, HaveTheirBitsWithAnyNumberOfRanks) {
  using T = TypeParam;
  for_all_ways([](const Communicator& any_order, Size shortest) {
    const Size n = shortest == 64 ? 4099 : shortest, size = any_order.size();
    for (const Size places : {1, 4, 16}) {  // with more ranks than places, some have none
      std::vector<std::vector<Range>> nodes;
      for (Size rank = 0; rank < size; ++rank)
        nodes.push_back(largest_nodes(balanced_split(places, size, rank)));
      expect_tree<T>(any_order, nodes, {{0, places}}, n);
    }
    // A run that is no whole tree, and parts that are no runs.
    std::vector<std::vector<Range>> some, halves;
    for (Size rank = 0; rank < size; ++rank) {
      const Range run = balanced_split(12, size, rank);
      some.push_back(largest_nodes({1 + run.begin, run.count}));
      halves.push_back({{rank, 1}, {2 * size - 1 - rank, 1}});
      if (size == 1) halves = {{{0, 2}}};
    }
    expect_tree<T>(any_order, some, largest_nodes({1, 12}), n);
    expect_tree<T>(any_order, halves, largest_nodes({0, 2 * size}), n);
  });
}

TYPED_TEST(SumsInATree, HaveOneTermPerRankByDefault) {
  using T = TypeParam;
  const Communicator any_order = Communicator::world();
  const Size n = 4099, places = Size{1} << tree_levels(any_order.size());
  const Range own = balanced_split(places, any_order.size(), any_order.rank());
  const Vector<T> v = rows_of<T>({own}, n, n, 1);
  any_order.in_tree().all_reduce(v);
  EXPECT_EQ(to_host(v), tree_sum<T>(n, 0, static_cast<int>(places)));
  // Other orders give other bits, so they would be found.
  std::vector<T> chain(static_cast<std::size_t>(n));
  for (int place = 0; place < places; ++place) {
    const std::vector<T> one = to_host(terms<T>(n, place));
    std::transform(chain.begin(), chain.end(), one.begin(), chain.begin(), std::plus<>());
  }
  if (places > 2) {
    EXPECT_NE(chain, to_host(v));
  }
  test::expect_contains(test::message_of([&] {
                          any_order.in_tree({{{}, {}, {}, {}, {}, {}, {}, {}, {}}});
                        }),
                        "terms for");
}

/// Every rank completes the calls in another order, so their second parts begin in another order.
TYPED_TEST(SumsInATree, MayFinishInAnyOrder) {
  using T = TypeParam;
  const Communicator any_order = Communicator::world();
  if (!is_power_of_two(any_order.size())) GTEST_SKIP() << "needs a power of two of ranks";
  const Communicator world = any_order.in_tree();
  constexpr Size calls = 4;
  for (const Size n : {5, 3000}) {
    std::vector<Vector<T>> sums;
    std::vector<Request> requests;
    for (Size call = 0; call < calls; ++call) {
      sums.push_back(terms<T>(n, world.rank(), call));
      requests.push_back(world.iall_reduce(sums.back()));
    }
    for (bool all_done = false; !all_done;) {
      all_done = true;
      for (Size call = 0; call < calls; ++call)
        all_done = requests[(call + world.rank()) % calls].test() && all_done;
    }
    for (Size call = 0; call < calls; ++call)
      EXPECT_EQ(to_host(sums[call]), tree_sum<T>(n, 0, world.size(), call)) << call;
  }
}

}  // namespace
}  // namespace tessera
