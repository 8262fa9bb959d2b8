// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <Kokkos_Core.hpp>

#include <tessera/base/thread_share.hpp>

namespace tessera {

// Events that tell tools more: before an action of a step, its position in the list of actions,
// "tessera::action 12", and its tensor, "tessera::tensor layer1"; in the region that starts a call,
// its payload, "tessera::bytes 1540".
inline constexpr std::string_view action_event = "tessera::action ",
                                  tensor_event = "tessera::tensor ",
                                  bytes_event = "tessera::bytes ";

/// The region of matrix products. One inside of another adds no time to it.
inline constexpr const char* products_region = "tessera::gemm";

/// Tells the event `kind` + text() to Kokkos Tools. Without a tool it costs one test.
template <class Text>
void mark_event(std::string_view kind, const Text& text) {
  if (Kokkos::Tools::profileLibraryLoaded()) Kokkos::Tools::markEvent(std::string(kind) + text());
}

/// A Kokkos profiling region during the life of this object, for Kokkos Tools and Caliper. Without
/// a tool it costs one test. Within share_items() there are none.
class Region {
 public:
  explicit Region(const char* name)
      : open_(Kokkos::Tools::profileLibraryLoaded() && !ThreadShare::is_open()) {
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
