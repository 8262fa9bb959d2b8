// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/comm/communicator.hpp>

#include "device_data.hpp"
#include "expect_error.hpp"

namespace tessera::test {

/// Options under which calls take different paths. All must give the same results.
inline std::vector<CommOptions> all_ways() {
  std::vector<CommOptions> ways(5);
  for (CommOptions& way : ways) way.timeout_seconds = 60;
  ways[0].check_collectives = false;
  ways[1].max_count = 7;
  ways[1].check_collectives = false;
  ways[2].stage_through_host = true;
  ways[3].stage_through_host = true;
  ways[3].max_count = 3;
  ways[4].check_collectives = true;
  return ways;
}

/// Whole numbers, small enough for sums to be exact in every type.
template <class T>
T value_of(Size i, int rank) {
  return static_cast<T>((7 * i + 3 * rank) % 11 + rank + 1);
}

template <class T, class F>
Vector<T> make_vector(Size n, const F& f) {
  Vector<T> v("v", static_cast<std::size_t>(n));
  const auto host = Kokkos::create_mirror_view(v);
  for (Size i = 0; i < n; ++i) host(i) = f(i);
  Kokkos::deep_copy(v, host);
  return v;
}

/// The message of the Error (communication) that f throws.
template <class F>
std::string message_of(const F& f) {
  return error_of(f, ExitCode::communication);
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << '"' << text << "\" lacks \"" << part << '"';
}

}  // namespace tessera::test
