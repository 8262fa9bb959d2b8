// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

namespace tessera {

/// A Kokkos profiling region during the life of this object, for Kokkos Tools and Caliper. Without
/// a tool it costs one test.
class Region {
 public:
  explicit Region(const char* name) : open_(Kokkos::Tools::profileLibraryLoaded()) {
    if (open_) Kokkos::Tools::pushRegion(name);
  }
  ~Region() {
    if (open_) Kokkos::Tools::popRegion();
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

 private:
  bool open_;
};

}  // namespace tessera
