// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fcntl.h>
#include <optional>

#include <tessera/base/alias.hpp>
#include <tessera/base/huge_pages.hpp>
#include <tessera/checkpoint/checksums.hpp>
#include <tessera/checkpoint/runs.hpp>
#include <tessera/checkpoint/tensors.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/engine/local_tensors.hpp>
#include <tessera/io/durable_file.hpp>

namespace tessera {
namespace {

/// Calls f(range) for pieces of at most `elements` elements of a range.
template <class F>
void for_each_piece(Range all, Size elements, const F& f) {
  for (Size begin = all.begin; begin < all.end(); begin += elements)
    f(Range{begin, std::min(elements, all.end() - begin)});
}

/// Returns the elements `range` of a local tensor.
template <class S>
auto elements_of(const LocalTensor<S>& local, Range range) {
  return alias_vector(local.values.data() + range.begin - local.kept.begin, range.count);
}

template <class S>
std::uint64_t sum_of(const CheckpointTensor& tensor, const Piece& piece, Range elements,
                     const S* values) {
  std::uint64_t sum = 0;
  for_each_run(tensor.shape, piece, elements, [&](Size first, Size place, Size count) {
    sum += hash_of_run(values + (first - elements.begin), count, place);
  });
  return sum;
}

/// Writes elements of a piece to a tensor that begins at byte `begin`. Returns their checksum. The
/// only place where tensors are written.
template <class S>
std::uint64_t write_elements(const OpenFile& file, Size begin, const CheckpointTensor& tensor,
                             const Piece& piece, Range elements, const S* values) {
  constexpr auto size = static_cast<Size>(sizeof(S));
  check_finite("a value of " + tensor.name, values, elements.count);
  for_each_run(tensor.shape, piece, elements, [&](Size first, Size place, Size count) {
    file.write(begin + place * size, values + (first - elements.begin), count * size);
  });
  return sum_of(tensor, piece, elements, values);
}

}  // namespace

template <class T>
std::vector<std::uint64_t> write_tensors(const TensorFile& to, const Engine<T>& engine, Size rank,
                                         Size piece) {
  using S = StateOf<T>;
  const Size elements = std::max<Size>(piece / static_cast<Size>(sizeof(S)), 1);
  const OpenFile file(to.path, O_WRONLY);
  std::vector<std::uint64_t> sums(to.tensors.size());
  for (const CheckpointPart& part : checkpoint_parts(engine.plan(), rank)) {
    const LocalTensor<S> local = local_tensor(engine, part.part);
    for_each_piece(part.written(), elements, [&](Range range) {
      const auto host =
          Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), elements_of(local, range));
      sums[part.tensor] += write_elements(file, to.places[part.tensor], to.tensors[part.tensor],
                                          local.piece, range, host.data());
    });
    if (to.after_tensor) to.after_tensor();
  }
  file.sync();
  return sums;
}

template <class T>
void Snapshot::take(const Engine<T>& engine, Size rank) {
  using S = StateOf<T>;
  if (!memory_.is_allocated()) {
    parts_ = checkpoint_parts(engine.plan(), rank);
    memory_ = Bytes(Kokkos::view_alloc("tessera::checkpoint_copy", Kokkos::WithoutInitializing),
                    static_cast<std::size_t>(checkpoint_bytes(engine.plan(), rank).written));
    advise_huge_pages(memory_.data(), static_cast<Size>(memory_.extent(0)));
  }
  S* to = reinterpret_cast<S*>(memory_.data());
  for (const CheckpointPart& part : parts_) {
    const Range range = part.written();
    if (range.count == 0) continue;
    Kokkos::deep_copy(Kokkos::View<S*, Kokkos::LayoutRight, Kokkos::HostSpace>(
                          to, static_cast<std::size_t>(range.count)),
                      elements_of(local_tensor(engine, part.part), range));
    to += range.count;
  }
}

std::vector<std::uint64_t> Snapshot::write(const TensorFile& to) const {
  const OpenFile file(to.path, O_WRONLY);
  std::vector<std::uint64_t> sums(to.tensors.size());
  const std::byte* from = memory_.data();
  for (const CheckpointPart& part : parts_) {
    const CheckpointTensor& tensor = to.tensors[part.tensor];
    const auto write_as = [&]<class S>(S) {
      return write_elements(file, to.places[part.tensor], tensor, part.part.piece, part.written(),
                            reinterpret_cast<const S*>(from));
    };
    sums[part.tensor] = tensor.type == DType::float64 ? write_as(double{}) : write_as(float{});
    from += part.written().count * size_of(tensor.type);
    if (to.after_tensor) to.after_tensor();
  }
  file.sync();
  return sums;
}

namespace {

/// Reads the parts of these tensors that this rank keeps. Their types are those in the file.
template <class T>
Size read_parts(const std::string& path, const Communicator& ranks, const Engine<T>& engine,
                const std::vector<CheckpointTensor>& tensors, Size piece) {
  using S = StateOf<T>;
  const Kokkos::View<Size*, Kokkos::HostSpace> sums("tessera::checkpoint_sums", tensors.size());
  Size bytes = 0;
  std::optional<CheckpointFile> file;
  collectively(ranks, [&] {
    file.emplace(path);
    check_tensors(*file, path, tensors);
    const auto read_as = [&]<class F>(F, const CheckpointPart& part) {
      const CheckpointTensor& tensor = tensors[part.tensor];
      const StoredTensor& stored = file->tensors().at(tensor.name);
      const LocalTensor<S> local = local_tensor(engine, part.part);
      for_each_piece(local.kept, std::max<Size>(piece / Size{sizeof(F)}, 1), [&](Range range) {
        std::vector<F> values(static_cast<std::size_t>(range.count));
        for_each_run(tensor.shape, local.piece, range, [&](Size first, Size place, Size count) {
          file->read(stored, place, count, values.data() + (first - range.begin));
        });
        bytes += range.count * Size{sizeof(F)};
        const Range counted = intersection(range, part.written());
        const std::uint64_t sum =
            sum_of(tensor, local.piece, counted, values.data() + (counted.begin - range.begin));
        sums(part.tensor) = static_cast<Size>(static_cast<std::uint64_t>(sums(part.tensor)) + sum);
        const auto to = elements_of(local, range);
        const auto host = Kokkos::create_mirror_view(Kokkos::HostSpace(), to);
        std::transform(values.begin(), values.end(), host.data(),
                       [](F value) { return static_cast<S>(value); });
        Kokkos::deep_copy(to, host);
      });
    };
    for (const CheckpointPart& part : checkpoint_parts(engine.plan(), ranks.rank())) {
      if (part.tensor >= std::ssize(tensors)) continue;
      tensors[part.tensor].type == DType::float64 ? read_as(double{}, part)
                                                  : read_as(float{}, part);
    }
  });
  ranks.all_reduce(sums);
  collectively(ranks, [&] {
    for (std::size_t t = 0; t < tensors.size(); ++t)
      file->check_sum(tensors[t].name, static_cast<std::uint64_t>(sums(t)));
  });
  return bytes;
}

}  // namespace

template <class T>
Size read_tensors(const std::string& path, const Communicator& ranks, const Engine<T>& engine,
                  Size piece) {
  return read_parts(path, ranks, engine, checkpoint_tensors(engine.plan()), piece);
}

template <class T>
Size read_parameters(const std::string& path, const Communicator& ranks, const Engine<T>& engine,
                     DType type) {
  std::vector<CheckpointTensor> tensors = checkpoint_tensors(engine.plan());
  tensors.resize(tensors.size() / (1 + engine.plan().input.moments));  // parameters come first
  for (CheckpointTensor& tensor : tensors) tensor.type = type;
  return read_parts(path, ranks, engine, tensors, checkpoint_piece);
}

#define TESSERA_INSTANTIATE(T)                                                                 \
  template std::vector<std::uint64_t> write_tensors(const TensorFile&, const Engine<T>&, Size, \
                                                    Size);                                     \
  template void Snapshot::take(const Engine<T>&, Size);                                        \
  template Size read_tensors(const std::string&, const Communicator&, const Engine<T>&, Size); \
  template Size read_parameters(const std::string&, const Communicator&, const Engine<T>&, DType);
TESSERA_FOR_COMPUTE_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
