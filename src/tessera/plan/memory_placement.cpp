// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include <tessera/plan/memory_placement.hpp>

namespace tessera {
namespace {

constexpr Size alignment = 64;  // of cache lines; products want their operands aligned
Size aligned(Size bytes) { return (bytes + alignment - 1) / alignment * alignment; }

bool meet(Range a, Range b) { return a.begin < b.end() && b.begin < a.end(); }

}  // namespace

Size place_in_memory(std::vector<Storage>& storages) {
  std::vector<std::size_t> order(storages.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return storages[a].bytes > storages[b].bytes;
  });
  Size total = 0;
  std::vector<const Storage*> placed;  // by offset
  for (const std::size_t i : order) {
    Storage& storage = storages[i];
    Size offset = 0;
    for (const Storage* other : placed) {
      if (!meet(storage.alive, other->alive)) continue;
      if (other->offset >= offset + storage.bytes) break;
      offset = std::max(offset, aligned(other->offset + other->bytes));
    }
    storage.offset = offset;
    total = std::max(total, offset + storage.bytes);
    const auto behind = std::find_if(placed.begin(), placed.end(),
                                     [&](const Storage* s) { return s->offset > offset; });
    placed.insert(behind, &storage);
  }
  return total;
}

}  // namespace tessera
