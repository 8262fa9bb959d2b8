// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/comm/communicator.hpp>
namespace tessera {
namespace {
TEST(Smoke, AllReduce) {
  auto w = Communicator::world();
  Vector<float> v("v", 5);
  Kokkos::deep_copy(v, 1.f);
  w.all_reduce(v);
  auto h = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), v);
  EXPECT_EQ(h(3), w.size());
  Request r = w.iall_reduce(v);
  r.wait();
  Vector<float> s("s", balanced_split(5, w.size(), w.rank()).count);
  w.reduce_scatter(v, s);
  w.all_gather(s, v);
  w.split(w.rank() % 2, 0, "x").barrier();
  for (auto& row : w.ledger().rows()) std::cout << row << "\n";
}
}  // namespace
}  // namespace tessera
