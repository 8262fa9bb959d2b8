// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
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
class Collectives : public testing::Test {
 protected:
  /// Extents near the number of ranks and near the sizes of pieces.
  static constexpr std::array<Size, 8> extents = {0, 1, 2, 3, 7, 8, 23, 64};

  static Vector<T> own(Size n, int rank) {
    return make_vector<T>(n, [&](Size i) { return value_of<T>(i, rank); });
  }
  static std::vector<T> reduced(Size n, int size, ReduceOp op) {
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
  static std::vector<T> part(const std::vector<T>& all, Range range) {
    return {all.begin() + range.begin, all.begin() + range.end()};
  }
  /// Unbalanced shares: rank r has 2r elements, so the share of rank 0 is empty.
  static std::vector<Size> growing(int size) {
    std::vector<Size> counts(static_cast<std::size_t>(size));
    for (int r = 0; r < size; ++r) counts[static_cast<std::size_t>(r)] = 2 * r;
    return counts;
  }
};

using ElementTypes = testing::Types<float, double, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(Collectives, ElementTypes);

/// 16-bit floats are moved, and never reduced.
template <class T>
class MovingCollectives : public Collectives<T> {};
using MovedTypes = testing::Types<float, double, std::int32_t, std::int64_t, BFloat16, Float16>;
TYPED_TEST_SUITE(MovingCollectives, MovedTypes);

TYPED_TEST(Collectives, AllReduceGivesEveryRankTheReduction) {
  for (const CommOptions& way : all_ways()) {
    const Communicator comm = Communicator::world(way);
    for (const Size n : this->extents) {
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
        const auto expected = this->reduced(n, comm.size(), op);
        const auto v = this->own(n, comm.rank());
        comm.all_reduce(v, op);
        EXPECT_EQ(to_host(v), expected);
        const auto w = this->own(n, comm.rank());
        comm.iall_reduce(w, op).wait();
        EXPECT_EQ(to_host(w), expected);
      }
    }
  }
}

TYPED_TEST(Collectives, ReduceScatterGivesEveryRankItsBalancedShare) {
  for (const CommOptions& way : all_ways()) {
    const Communicator comm = Communicator::world(way);
    for (const Size n : this->extents) {
      const Range share = balanced_split(n, comm.size(), comm.rank());
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
        const auto expected = this->part(this->reduced(n, comm.size(), op), share);
        const auto in = this->own(n, comm.rank());
        const Vector<TypeParam> out("out", static_cast<std::size_t>(share.count));
        const Vector<TypeParam> late("late", out.extent(0));
        comm.reduce_scatter(in, out, op);
        comm.ireduce_scatter(in, late, op).wait();
        EXPECT_EQ(to_host(out), expected);
        EXPECT_EQ(to_host(late), expected);
        EXPECT_EQ(to_host(in), to_host(this->own(n, comm.rank()))) << "the input must stay";
        const auto v = this->own(n, comm.rank());
        comm.reduce_scatter(v, op);
        EXPECT_EQ(this->part(to_host(v), share), expected);
        for (Request request = comm.ireduce_scatter(in, op); !request.test();) {
        }
        EXPECT_EQ(this->part(to_host(in), share), expected);
      }
    }
    const Size elements =
        8 * std::accumulate(std::begin(this->extents), std::end(this->extents), Size{0});
    for (const LedgerRow& row : comm.ledger().rows()) {
      EXPECT_EQ(row, (LedgerRow{"world", Operation::reduce_scatter,
                                static_cast<Size>(8 * std::size(this->extents)),
                                elements * static_cast<Size>(sizeof(TypeParam))}));
    }
  }
}

TYPED_TEST(MovingCollectives, AllGatherPutsTheSharesInOrder) {
  for (const CommOptions& way : all_ways()) {
    const Communicator comm = Communicator::world(way);
    for (const Size n : this->extents) {
      const Range share = balanced_split(n, comm.size(), comm.rank());
      const auto expected = to_host(this->own(n, 0));
      const auto all = make_vector<TypeParam>(n, [&](Size i) {
        return i >= share.begin && i < share.end() ? value_of<TypeParam>(i, 0) : TypeParam(-1);
      });
      const auto in = Kokkos::subview(all, std::pair(share.begin, share.end()));
      const Vector<TypeParam> out("out", static_cast<std::size_t>(n)), late("late", out.extent(0));
      comm.all_gather(in, out);
      comm.iall_gather(in, late).wait();
      comm.all_gather(in, all);
      for (const auto& v : {out, late, all}) EXPECT_EQ(to_host(v), expected);
    }
  }
}

TYPED_TEST(Collectives, SharesMayBeGiven) {
  for (const CommOptions& way : all_ways()) {
    const Communicator comm = Communicator::world(way);
    const std::vector<Size> counts = this->growing(comm.size());
    const Size n = std::accumulate(counts.begin(), counts.end(), Size{0});
    const Size begin = std::accumulate(counts.begin(), counts.begin() + comm.rank(), Size{0});
    const Size count = 2 * comm.rank();
    const auto in = this->own(n, comm.rank());
    const Vector<TypeParam> share("share", static_cast<std::size_t>(count));
    comm.reduce_scatter(in, share, ReduceOp::sum, counts);
    const auto sum = this->reduced(n, comm.size(), ReduceOp::sum);
    EXPECT_EQ(to_host(share), this->part(sum, {begin, count}));
    const Vector<TypeParam> all("all", static_cast<std::size_t>(n));
    comm.all_gather(share, all, counts);
    EXPECT_EQ(to_host(all), sum);
    Kokkos::deep_copy(share, TypeParam(0));
    Kokkos::deep_copy(all, TypeParam(0));
    comm.ireduce_scatter(in, share, ReduceOp::sum, counts).wait();
    comm.iall_gather(share, all, counts).wait();
    EXPECT_EQ(to_host(all), sum);
  }
}

TYPED_TEST(MovingCollectives, BroadcastGivesEveryRankTheRootsValues) {
  for (const CommOptions& way : all_ways()) {
    const Communicator comm = Communicator::world(way);
    for (const Size n : this->extents) {
      for (int root = 0; root < comm.size(); ++root) {
        const auto v = this->own(n, comm.rank());
        comm.broadcast(v, root);
        EXPECT_EQ(to_host(v), to_host(this->own(n, root)));
      }
    }
  }
}

// Rank i sends (i + 2 j) mod 5 elements to rank j, each of them 100 i + j: some parts are empty.
TYPED_TEST(MovingCollectives, AllToAllExchangesUnevenParts) {
  for (const CommOptions& way : all_ways()) {
    const Communicator comm = Communicator::world(way);
    const auto count = [](int from, int to) { return Size{(from + 2 * to) % 5}; };
    std::vector<Size> send_counts, receive_counts;
    std::vector<TypeParam> in, expected;
    for (int other = 0; other < comm.size(); ++other) {
      send_counts.push_back(count(comm.rank(), other));
      receive_counts.push_back(count(other, comm.rank()));
      in.insert(in.end(), static_cast<std::size_t>(send_counts.back()),
                static_cast<TypeParam>(100 * comm.rank() + other));
      expected.insert(expected.end(), static_cast<std::size_t>(receive_counts.back()),
                      static_cast<TypeParam>(100 * other + comm.rank()));
    }
    const auto from = make_vector<TypeParam>(
        static_cast<Size>(in.size()), [&](Size i) { return in[static_cast<std::size_t>(i)]; });
    const Vector<TypeParam> to("to", expected.size());
    comm.all_to_all(from, send_counts, to, receive_counts);
    EXPECT_EQ(to_host(to), expected);
  }
}

// Messages around a ring, with tags out of order and collectives in between.
TYPED_TEST(Collectives, MessagesMeetByRankAndTagAndDoNotDisturbCollectives) {
  for (const CommOptions& way : all_ways()) {
    const Communicator comm = Communicator::world(way);
    if (comm.size() == 1) continue;
    const int next = (comm.rank() + 1) % comm.size();
    const int previous = (comm.rank() + comm.size() - 1) % comm.size();
    for (const Size n : this->extents) {
      const Vector<TypeParam> a("a", static_cast<std::size_t>(n)), b("b", a.extent(0));
      std::vector<Request> requests;
      requests.push_back(comm.ireceive(a, previous, 1));
      requests.push_back(comm.ireceive(b, previous, 2));
      const auto v = this->own(n, comm.rank());
      comm.all_reduce(v);
      requests.push_back(comm.isend(this->own(n, comm.rank() + 10), next, 2));
      requests.push_back(comm.isend(this->own(n, comm.rank()), next, 1));
      for (Request& request : requests) request.wait();
      EXPECT_EQ(to_host(a), to_host(this->own(n, previous)));
      EXPECT_EQ(to_host(b), to_host(this->own(n, previous + 10)));
      if (comm.rank() % 2 == 0) {
        if (comm.rank() + 1 < comm.size()) comm.send(v, next, 3);
      } else {
        comm.receive(a, previous, 3);
        EXPECT_EQ(to_host(a), this->reduced(n, comm.size(), ReduceOp::sum));
      }
    }
  }
}

TYPED_TEST(Collectives, SeveralRequestsAreInFlightAtOnce) {
  for (const CommOptions& way : all_ways()) {
    const Communicator comm = Communicator::world(way);
    std::vector<Vector<TypeParam>> views;
    std::vector<Request> requests;
    for (const Size n : this->extents) {
      views.push_back(this->own(n, comm.rank()));
      requests.push_back(comm.iall_reduce(views.back()));
    }
    for (auto request = requests.rbegin(); request != requests.rend(); ++request) {
      while (!request->test()) {
      }
    }
    for (const auto& v : views) {
      EXPECT_EQ(to_host(v), this->reduced(static_cast<Size>(v.size()), comm.size(), ReduceOp::sum));
    }
  }
}

/// Terms whose sum depends on the order.
template <class T>
T rounding_term(Size i, int rank) {
  return T(1) / static_cast<T>(3 + 7 * i + 11 * rank) * static_cast<T>(rank % 3 == 0 ? 1000 : 1);
}

/// The sum over ranks [first, first + count) as a tree.
template <class T>
T tree_sum(Size i, int first, int count) {
  if (count == 1) return rounding_term<T>(i, first);
  return tree_sum<T>(i, first, count / 2) + tree_sum<T>(i, first + count / 2, count / 2);
}

TYPED_TEST(Collectives, SumsInATreeOverTheRanks) {
  using T = TypeParam;
  if constexpr (std::is_floating_point_v<T>) {
    for (const CommOptions& way : all_ways()) {
      const Communicator any_order = Communicator::world(way);
      if (!is_power_of_two(any_order.size())) {
        EXPECT_NE(test::message_of([&] { any_order.in_tree(); }).find("power of two"),
                  std::string::npos);
        continue;
      }
      const Communicator world = any_order.in_tree();
      const int size = world.size(), rank = world.rank();
      bool is_chain = true;
      for (const Size n : {0, 1, 5, 64, 4099}) {
        const auto terms = [&] {
          return make_vector<T>(n, [&](Size i) { return rounding_term<T>(i, rank); });
        };
        std::vector<T> expected;
        for (Size i = 0; i < n; ++i) {
          expected.push_back(tree_sum<T>(i, 0, size));
          T chain = 0;
          for (int r = 0; r < size; ++r) chain += rounding_term<T>(i, r);
          is_chain = is_chain && chain == expected.back();
        }
        const Vector<T> all = terms(), started = terms(), part = terms();
        world.all_reduce(all);
        EXPECT_EQ(to_host(all), expected) << n;
        Request request = world.iall_reduce(started);
        while (!request.test()) continue;
        EXPECT_EQ(to_host(started), expected) << n;
        world.reduce_scatter(part);
        const Range own = balanced_split(n, size, rank);
        const std::vector<T> values = to_host(part);
        EXPECT_TRUE(std::equal(expected.begin() + own.begin, expected.begin() + own.end(),
                               values.begin() + own.begin))
            << n;
      }
      // Other orders give other bits, so they would be found.
      if (size > 2) {
        EXPECT_FALSE(is_chain);
      }
    }
  }
}

/// Every rank completes the calls in another order, so their second parts begin in another order.
TEST(SumsInATree, StartedCallsMayFinishInAnyOrder) {
  const Communicator any_order = Communicator::world();
  if (!is_power_of_two(any_order.size())) GTEST_SKIP() << "needs a power of two of ranks";
  const Communicator world = any_order.in_tree();
  constexpr Size calls = 4;
  for (const Size n : {5, 3000}) {
    std::vector<Vector<double>> terms;
    std::vector<Request> requests;
    for (Size c = 0; c < calls; ++c) {
      terms.push_back(make_vector<double>(
          n, [&](Size i) { return rounding_term<double>(i + c, world.rank()); }));
      requests.push_back(world.iall_reduce(terms.back()));
    }
    for (bool all_done = false; !all_done;) {
      all_done = true;
      for (Size c = 0; c < calls; ++c)
        all_done = requests[(c + world.rank()) % calls].test() && all_done;
    }
    for (Size c = 0; c < calls; ++c) {
      const std::vector<double> sums = to_host(terms[c]);
      for (Size i = 0; i < n; ++i)
        ASSERT_EQ(sums[i], tree_sum<double>(i + c, 0, world.size())) << c << ", " << i;
    }
  }
}

}  // namespace
}  // namespace tessera
