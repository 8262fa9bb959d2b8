// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstddef>
#include <fcntl.h>

#include <tessera/base/alias.hpp>
#include <tessera/base/huge_pages.hpp>
#include <tessera/checkpoint/checksums.hpp>
#include <tessera/checkpoint/hyperslabs.hpp>
#include <tessera/checkpoint/snapshot.hpp>
#include <tessera/engine/local_tensors.hpp>
#include <tessera/io/durable_file.hpp>

namespace tessera {
namespace {

static_assert(std::endian::native == std::endian::little,
              "arrays of checkpoints are little-endian");

/// Writes the elements of a part to an array that begins at byte `begin`. Returns their checksum.
template <class S>
Size write_part(const OpenFile& file, Size begin, const CheckpointTensor& tensor,
                const TensorPart& part, Range elements, const S* values) {
  constexpr auto size = static_cast<Size>(sizeof(S));
  check_finite("a value of " + tensor.name, values, elements.count);
  Size sum = 0;
  for_each_run(tensor.shape, part.piece, elements, [&](Size first, Size place, Size count) {
    const S* const run = values + (first - elements.begin);
    file.write(begin + place * size, run, count * size);
    add_hash(sum, hash_of_run(run, count, place));
  });
  return sum;
}

}  // namespace

template <class T>
void Snapshot::take(const Engine<T>& engine, Size rank) {
  using S = StateOf<T>;
  constexpr auto size = static_cast<Size>(sizeof(S));
  if (tensors_.empty()) {
    tensors_ = checkpoint_tensors(engine.plan());
    parts_ = checkpoint_parts(engine.plan(), rank);
    memory_ = Bytes(Kokkos::view_alloc("tessera::checkpoint_copy", Kokkos::WithoutInitializing),
                    static_cast<std::size_t>(checkpoint_bytes(engine.plan(), rank).written));
    advise_huge_pages(memory_.data(), bytes());
  }
  std::byte* to = memory_.data();
  for (const CheckpointPart& part : parts_) {
    const Range range = part.written();
    if (range.count == 0) continue;
    const LocalTensor<S> local = local_tensor(engine, part.part);
    Kokkos::deep_copy(
        Kokkos::View<S*, Kokkos::LayoutRight, Kokkos::HostSpace>(
            reinterpret_cast<S*>(to), static_cast<std::size_t>(range.count)),
        alias_vector(local.values.data() + range.begin - local.kept.begin, range.count));
    to += range.count * size;
  }
}

std::vector<Size> Snapshot::write(const std::string& path, const std::vector<Size>& places,
                                  const std::function<void()>& after_tensor) const {
  const OpenFile file(path, O_WRONLY);
  std::vector<Size> sums(tensors_.size());
  const std::byte* from = memory_.data();
  for (const CheckpointPart& part : parts_) {
    const CheckpointTensor& tensor = tensors_[part.tensor];
    const Range range = part.written();
    const auto write_as = [&]<class S>(S) {
      return write_part(file, places[part.tensor], tensor, part.part, range,
                        reinterpret_cast<const S*>(from));
    };
    sums[part.tensor] = tensor.type == DType::float64 ? write_as(double{}) : write_as(float{});
    from += range.count * size_of(tensor.type);
    after_tensor();
  }
  file.sync();
  return sums;
}

template void Snapshot::take(const Engine<float>&, Size);
template void Snapshot::take(const Engine<double>&, Size);
template void Snapshot::take(const Engine<BFloat16>&, Size);
template void Snapshot::take(const Engine<Float16>&, Size);

}  // namespace tessera
