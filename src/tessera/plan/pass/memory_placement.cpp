// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include <tessera/plan/pass/memory_placement.hpp>

namespace tessera {
namespace {

constexpr Size line_bytes = 64;  // a cache line; products read aligned operands faster
Size aligned_bytes(Size bytes) { return (bytes + line_bytes - 1) / line_bytes * line_bytes; }

/// Returns the largest number of ranges that contain the same position. Ranges end in the order in
/// which they begin.
Size most_at_a_time(const std::vector<Range>& ranges) {
  std::size_t most = 0, oldest = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    while (oldest < i && ranges[oldest].end() <= ranges[i].begin) ++oldest;
    most = std::max(most, i + 1 - oldest);
  }
  return static_cast<Size>(most);
}

/// Returns true if a range of `a` overlaps with a range of `b`. Both are ascending.
bool meet(const std::vector<Range>& a, const std::vector<Range>& b) {
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i].begin < b[j].end() && b[j].begin < a[i].end()) return true;
    a[i].end() < b[j].end() ? ++i : ++j;
  }
  return false;
}

/// Returns the bytes of all instances.
Size size_of(const Storage& storage) {
  return (storage.instances - 1) * storage.stride + storage.bytes;
}

}  // namespace

Size place_in_memory(std::vector<Storage>& storages) {
  for (Storage& storage : storages) {
    storage.instances = std::max<Size>(1, most_at_a_time(storage.alive));
    storage.stride = aligned_bytes(storage.bytes);
  }
  std::vector<std::size_t> order(storages.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return size_of(storages[a]) > size_of(storages[b]);
  });
  Size total = 0;
  std::vector<const Storage*> placed;  // ascending offsets
  for (const std::size_t i : order) {
    Storage& storage = storages[i];
    Size offset = 0;
    for (const Storage* other : placed) {
      if (!meet(storage.alive, other->alive)) continue;
      if (other->offset >= offset + size_of(storage)) break;
      offset = std::max(offset, aligned_bytes(other->offset + size_of(*other)));
    }
    storage.offset = offset;
    total = std::max(total, offset + size_of(storage));
    const auto next = std::find_if(placed.begin(), placed.end(),
                                   [&](const Storage* s) { return s->offset > offset; });
    placed.insert(next, &storage);
  }
  return total;
}

}  // namespace tessera
