// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <tuple>

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

/// Returns true if no two microbatches that use one of `instances` instances are alive at the same
/// time, if those of `b` use instances that are later by `shift`.
bool take_turns(const Storage& a, const Storage& b, Size instances, Size shift) {
  for (Size m = 0; m < std::ssize(b.alive); ++m)
    for (Size i = (m + shift) % instances; i < std::ssize(a.alive); i += instances)
      if (a.alive[i].begin < b.alive[m].end() && b.alive[m].begin < a.alive[i].end()) return false;
  return true;
}

/// Finds pairs of storages that can use the same instances, those that save most first. Returns for
/// each storage the one that it shares instances with, if that one is placed behind it.
std::vector<Storage*> find_pairs(std::vector<Storage>& storages, Size group) {
  const auto together = [&](const Storage& a, const Storage& b) {
    return (std::max(a.instances, b.instances) + group - 1) / group * group;
  };
  std::vector<std::tuple<Size, std::size_t, std::size_t>> pairs;  // bytes that they save, a, b
  for (std::size_t b = 0; b < storages.size(); ++b)
    for (std::size_t a = 0; group > 0 && a < b; ++a) {
      const Storage &one = storages[a], &other = storages[b];
      const Size saves = one.instances + other.instances - together(one, other);
      if (one.bytes == other.bytes && saves > 0) pairs.emplace_back(saves * one.stride, a, b);
    }
  std::ranges::stable_sort(pairs, std::greater<>(), [](const auto& p) { return std::get<0>(p); });
  std::vector<Storage*> partner(storages.size(), nullptr);
  std::vector<char> is_taken(storages.size(), false);
  for (const auto& [saves, a, b] : pairs) {
    const Size instances = together(storages[a], storages[b]);
    for (Size shift = 0; shift < instances && !is_taken[a] && !is_taken[b]; shift += group) {
      if (!take_turns(storages[a], storages[b], instances, shift)) continue;
      storages[a].instances = storages[b].instances = instances;
      storages[b].shift = shift;
      partner[a] = &storages[b];
      is_taken[a] = is_taken[b] = true;
    }
  }
  return partner;
}

}  // namespace

Size place_in_memory(std::vector<Storage>& storages, Size group) {
  for (Storage& storage : storages) {
    storage.instances = std::max<Size>(1, most_at_a_time(storage.alive));
    storage.stride = aligned_bytes(storage.bytes);
  }
  const std::vector<Storage*> partners = find_pairs(storages, group);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < storages.size(); ++i)
    if (std::find(partners.begin(), partners.end(), &storages[i]) == partners.end())
      order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return size_of(storages[a]) > size_of(storages[b]);
  });
  Size total = 0;
  std::vector<const Storage*> placed;  // ascending offsets
  for (const std::size_t i : order) {
    Storage& storage = storages[i];
    Storage* const partner = partners[i];
    Size offset = 0;
    for (const Storage* other : placed) {
      if (!meet(storage.alive, other->alive) && !(partner && meet(partner->alive, other->alive)))
        continue;
      if (other->offset >= offset + size_of(storage)) break;
      offset = std::max(offset, aligned_bytes(other->offset + size_of(*other)));
    }
    storage.offset = offset;
    total = std::max(total, offset + size_of(storage));
    const auto next = std::find_if(placed.begin(), placed.end(),
                                   [&](const Storage* s) { return s->offset > offset; });
    const auto at = placed.insert(next, &storage);
    if (partner == nullptr) continue;
    partner->offset = offset;
    placed.insert(at, partner);
  }
  return total;
}

}  // namespace tessera
