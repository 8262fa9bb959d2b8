// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstring>

#include <tessera/comm/buffer.hpp>

namespace tessera {
namespace {

template <class Space>
using Bytes = Kokkos::View<char*, Space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

template <class From, class To>
void copy_between(const Buffer& from, const Buffer& to, bool waits = true) {
  const auto n = static_cast<std::size_t>(from.bytes());
  // The copy runs after the kernels of this space. Without a space it would wait for the device.
  const ExecSpace space;
  Kokkos::deep_copy(space, Bytes<To>(static_cast<char*>(to.data), n),
                    Bytes<From>(static_cast<char*>(from.data), n));
  if (waits) space.fence("tessera::comm: copy");
}

void copy_row(const Buffer& from, const Buffer& to, bool waits) {
  if (from.count == 0 || from.data == to.data) return;
  if (from.host_accessible && to.host_accessible) {
    if (from.needs_fence || to.needs_fence) ExecSpace().fence("tessera::comm: copy");
    std::memcpy(to.data, from.data, static_cast<std::size_t>(from.bytes()));
  } else if (from.host_accessible) {
    copy_between<Kokkos::HostSpace, MemSpace>(from, to);
  } else if (to.host_accessible) {
    copy_between<MemSpace, Kokkos::HostSpace>(from, to);
  } else {
    copy_between<MemSpace, MemSpace>(from, to, waits);
  }
}

}  // namespace

void copy(const Buffer& from, const Buffer& to, bool waits) {
  for (Size row = 0; row < std::min(from.rows, to.rows); ++row)
    copy_row(from.slice(row * from.stride, from.count), to.slice(row * to.stride, to.count), waits);
}

}  // namespace tessera
