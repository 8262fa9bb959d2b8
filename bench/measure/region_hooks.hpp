// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

namespace tessera::bench {

/// Calls two functions at the begin and end of every profiling region while it lives, instead of
/// the callbacks that were set before.
class RegionHooks {
 public:
  RegionHooks(void (*on_push)(const char* name), void (*on_pop)())
      : earlier_(Kokkos::Tools::Experimental::get_callbacks()) {
    Kokkos::Tools::Experimental::set_push_region_callback(on_push);
    Kokkos::Tools::Experimental::set_pop_region_callback(on_pop);
  }
  ~RegionHooks() {
    Kokkos::Tools::Experimental::set_push_region_callback(earlier_.push_region);
    Kokkos::Tools::Experimental::set_pop_region_callback(earlier_.pop_region);
  }
  RegionHooks(const RegionHooks&) = delete;
  RegionHooks& operator=(const RegionHooks&) = delete;

 private:
  Kokkos::Tools::Experimental::EventSet earlier_;
};

}  // namespace tessera::bench
