// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/share_items.hpp>

namespace tessera {
namespace {

constexpr Size much = Size{1} << 40;  // work

/// Returns the threads that compute each item, also within a kernel over `inner` elements.
std::vector<std::set<std::thread::id>> threads_of(Size items, Size most, Size work, Size inner) {
  std::vector<std::set<std::thread::id>> threads(static_cast<std::size_t>(items));
  std::vector<std::set<Size>> shares(static_cast<std::size_t>(items));
  const auto compute = [&](auto i) {  // a template: a device's kernels take no such lambdas
    if constexpr (on_host) {
      std::vector<std::thread::id> of_element(static_cast<std::size_t>(inner));
      for_each(
          "test::inner"_label, inner, [&](Size j) { of_element[j] = std::this_thread::get_id(); },
          much);
      threads[i].insert(of_element.begin(), of_element.end());
    }
  };
  share_items("test::items"_label, items, most, work, [&](const Range& own, Size share) {
    EXPECT_LT(share, std::max<Size>(1, most));
    for (Size i = own.begin; i < own.end(); ++i) {
      shares[i].insert(share);
      threads[i].insert(std::this_thread::get_id());
      compute(i);
    }
  });
  for (const auto& of : shares) EXPECT_EQ(of.size(), 1u) << "an item has one share";
  return threads;
}

Size number_of(const std::vector<std::set<std::thread::id>>& threads) {
  std::set<std::thread::id> all;
  for (const auto& of : threads) all.insert(of.begin(), of.end());
  return std::ssize(all);
}

TEST(ShareItems, EachItemIsComputedByOneThreadWithItsKernels) {
  if (!on_host) GTEST_SKIP() << "a device has one share";
  for (const Size items : {0, 1, 2, 5, 64}) {
    for (const Size most : {1, 2, 100}) {
      const auto threads = threads_of(items, most, much, 0);
      EXPECT_EQ(number_of(threads), std::min({items, most, kernel_threads()}));
      if (std::min(items, most) < 2) continue;
      for (const auto& of : threads_of(items, most, much, 8)) EXPECT_EQ(of.size(), 1u);
    }
  }
}

TEST(ShareItems, KernelsOfTheOnlyShareUseAllThreads) {
  if (!on_host) GTEST_SKIP() << "a device has one share";
  EXPECT_EQ(number_of(threads_of(1, 1, much, 64)), std::min<Size>(64, kernel_threads()));
  EXPECT_EQ(number_of(threads_of(5, 1, much, 64)), std::min<Size>(64, kernel_threads()));
}

TEST(ShareItems, RethrowsOnTheCallingThreadAndLeavesTheShare) {
  const auto fail = [](const Range& own, Size) {
    if (own.end() == 4) throw std::runtime_error("of the last item");
  };
  for (const Size work : {Size{0}, much})
    EXPECT_THROW(share_items("test::items"_label, 4, 4, work, fail), std::runtime_error);
  EXPECT_FALSE(ThreadShare::is_open());
  EXPECT_EQ(number_of(threads_of(1, 1, much, 64)),
            on_host ? std::min<Size>(64, kernel_threads()) : 1);
}

}  // namespace
}  // namespace tessera
