// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <fcntl.h>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include <tessera/base/alias.hpp>
#include <tessera/base/half_float.hpp>
#include <tessera/base/huge_pages.hpp>
#include <tessera/checkpoint/checksums.hpp>
#include <tessera/checkpoint/runs.hpp>
#include <tessera/checkpoint/tensors.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/engine/local_tensors.hpp>
#include <tessera/io/durable_file.hpp>
#include <tessera/tensor/placement.hpp>

namespace tessera {
namespace {

/// Calls f(range) for pieces of at most `bytes` bytes of a range of elements.
template <class S, class F>
void for_each_piece(Range all, Size bytes, const F& f) {
  const Size elements = std::max<Size>(bytes / Size{sizeof(S)}, 1);
  for (Size begin = all.begin; begin < all.end(); begin += elements)
    f(Range{begin, std::min(elements, all.end() - begin)});
}

/// Returns the elements `range` of a local tensor.
template <class S>
auto elements_of(const LocalTensor<S>& local, Range range) {
  return alias_vector(local.values.data() + range.begin - local.kept.begin, range.count);
}

template <class S>
std::uint64_t sum_of(const Shape& shape, const Piece& piece, Range elements, const S* values) {
  std::uint64_t sum = 0;
  for_each_run(shape, piece, elements, [&](Size first, Size place, Size count) {
    sum += hash_of_run(values + (first - elements.begin), count, place);
  });
  return sum;
}

/// Writes what the rank owns of these parts, and syncs the file. `write_part(part, write)` calls
/// write(elements, values) for the elements of a part, piece after piece. Returns the checksums.
/// The only place where tensors are written.
template <class F>
std::vector<std::uint64_t> write_parts(const TensorFile& to,
                                       const std::vector<CheckpointPart>& parts,
                                       const F& write_part) {
  const OpenFile file(to.path, O_WRONLY);
  std::vector<std::uint64_t> sums(to.tensors.size());
  for (const CheckpointPart& part : parts) {
    const CheckpointTensor& tensor = to.tensors[part.tensor];
    write_part(part, [&](Range elements, const auto* values) {
      check_finite("a value of " + tensor.name, values, elements.count);
      for_each_run(tensor.shape, part.part.piece, elements,
                   [&](Size first, Size place, Size count) {
                     constexpr auto size = static_cast<Size>(sizeof(*values));
                     file.write(to.places[part.tensor] + place * size,
                                values + (first - elements.begin), count * size);
                   });
      sums[part.tensor] += sum_of(tensor.shape, part.part.piece, elements, values);
    });
    if (to.after_tensor) to.after_tensor();
  }
  file.sync();
  return sums;
}

}  // namespace

template <class T>
std::vector<std::uint64_t> write_tensors(const TensorFile& to, const Engine<T>& engine, Size rank,
                                         Size piece) {
  return write_parts(to, checkpoint_parts(engine.plan(), rank),
                     [&](const CheckpointPart& part, const auto& write) {
                       with_local_tensor(engine, part.part, [&]<class S>(const LocalTensor<S>& of) {
                         for_each_piece<S>(part.written(), piece, [&](Range range) {
                           write(range, Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(),
                                                                            elements_of(of, range))
                                            .data());
                         });
                       });
                     });
}

template <class T>
void Snapshot::take(const Engine<T>& engine, Size rank) {
  if (!memory_.is_allocated()) {
    parts_ = checkpoint_parts(engine.plan(), rank);
    memory_ = Bytes(Kokkos::view_alloc("tessera::checkpoint_copy", Kokkos::WithoutInitializing),
                    static_cast<std::size_t>(checkpoint_bytes(engine.plan(), rank).written));
    advise_huge_pages(memory_.data(), static_cast<Size>(memory_.extent(0)));
  }
  std::byte* to = memory_.data();
  for (const CheckpointPart& part : parts_) {
    const Range range = part.written();
    if (range.count == 0) continue;
    with_local_tensor(engine, part.part, [&]<class S>(const LocalTensor<S>& local) {
      Kokkos::deep_copy(Kokkos::View<S*, Kokkos::LayoutRight, Kokkos::HostSpace>(
                            reinterpret_cast<S*>(to), static_cast<std::size_t>(range.count)),
                        elements_of(local, range));
    });
    to += range.count * size_of(part.part.slot.type);
  }
}

std::vector<std::uint64_t> Snapshot::write(const TensorFile& to) const {
  const std::byte* from = memory_.data();
  return write_parts(to, parts_, [&](const CheckpointPart& part, const auto& write) {
    const Range range = part.written();
    const DType type = to.tensors[part.tensor].type;
    with_compute_type(type, [&]<class S>(S) { write(range, reinterpret_cast<const S*>(from)); });
    from += range.count * size_of(type);
  });
}

namespace {

/// Reads elements of a piece of a tensor, as the files have them.
template <class F>
void read_elements(const TensorSource& from, const Shape& shape, const Piece& piece, Range range,
                   F* values) {
  const auto read = [&](Size place, Size count, F* to) {
    const auto [number, first] = from.layout.place_of(shape, place);
    const auto& [file, array] = from.arrays[number];
    file->read(array, first, count, to);
  };
  if (!from.layout.transposed)
    return for_each_run(shape, piece, range, [&](Size first, Size place, Size count) {
      for (Size done = 0; done < count;) {
        const Size run = from.layout.run_from(place + done, count - done);
        read(place + done, run, values + (first + done - range.begin));
        done += run;
      }
    });
  // A column of a matrix is contiguous in the file.
  const std::size_t last = shape.size() - 1;
  const Size rows = piece.extent[last - 1], columns = piece.extent[last];
  const GlobalIndex place_of(shape, piece);
  const Size end_row = (range.end() + columns - 1) / columns;
  std::vector<F> column;
  for (Size row = range.begin / columns, end; row < end_row; row = end) {
    end = std::min(end_row, (row / rows + 1) * rows);  // of an expert's matrix
    column.resize(end - row);
    for (Size j = 0; j < columns; ++j) {
      read(place_of(row * columns + j), end - row, column.data());
      for (Size i = row; i < end; ++i)
        if (const Size element = i * columns + j; element >= range.begin && element < range.end())
          values[element - range.begin] = column[i - row];
    }
  }
}

/// Throws Error (usage) unless the checkpoint has these tensors.
void check_tensors(const CheckpointFile& file, const std::vector<CheckpointTensor>& tensors) {
  ArrayTexts wanted, found;
  const auto text_of = [](DType type, const Shape& shape) {
    return fmt::format("{} {}", name_of(type), to_string(shape));
  };
  for (const CheckpointTensor& tensor : tensors) {
    wanted[tensor.name] = text_of(tensor.type, tensor.shape);
    if (const auto there = file.tensors().find(tensor.name); there != file.tensors().end())
      found[tensor.name] = text_of(there->second.type, there->second.array.shape);
  }
  if (const std::string other = misfits(wanted, found); !other.empty())
    throw Error(ExitCode::usage, "{}: does not fit this run: {}", file.file().path(), other);
}

}  // namespace

template <class T>
Size read_tensors(const std::vector<TensorSource>& from, const Communicator& ranks,
                  const Engine<T>& engine, Size piece) {
  const std::vector<CheckpointTensor> tensors = checkpoint_tensors(engine.plan());
  const Kokkos::View<Size*, Kokkos::HostSpace> sums("tessera::checkpoint_sums", from.size());
  Size bytes = 0;
  const auto path_of = [&](Size tensor) { return from[tensor].arrays.front().file->path(); };
  const auto read_as = [&]<class F, class S>(F, const CheckpointPart& part,
                                             const LocalTensor<S>& local) {
    const Shape& shape = tensors[part.tensor].shape;
    for_each_piece<F>(local.kept, piece, [&](Range range) {
      std::vector<F> values(static_cast<std::size_t>(range.count));
      read_elements(from[part.tensor], shape, local.piece, range, values.data());
      bytes += range.count * Size{sizeof(F)};
      const Range counted = intersection(range, part.written());
      const std::uint64_t sum =
          sum_of(shape, local.piece, counted, values.data() + (counted.begin - range.begin));
      sums(part.tensor) = static_cast<Size>(static_cast<std::uint64_t>(sums(part.tensor)) + sum);
      const auto to = elements_of(local, range);
      const auto host = Kokkos::create_mirror_view(Kokkos::HostSpace(), to);
      std::transform(values.begin(), values.end(), host.data(), [&](F value) {
        const S converted = static_cast<S>(value);
        if (std::isfinite(converted)) return converted;
        throw Error(ExitCode::usage, "{}: {}: has a value that is not finite in {}",
                    path_of(part.tensor), tensors[part.tensor].name, name_of(dtype_of<S>()));
      });
      Kokkos::deep_copy(to, host);
    });
  };
  collectively(ranks, [&] {
    for (const CheckpointPart& part : checkpoint_parts(engine.plan(), ranks.rank()))
      if (part.tensor < std::ssize(from))
        with_compute_type(*from[part.tensor].arrays.front().array.dtype(), [&](auto type) {
          with_local_tensor(engine, part.part,
                            [&](const auto& local) { read_as(type, part, local); });
        });
  });
  ranks.all_reduce(sums);
  collectively(ranks, [&] {
    for (std::size_t t = 0; t < from.size(); ++t)
      if (from[t].checksum && *from[t].checksum != static_cast<std::uint64_t>(sums(t)))
        throw Error(ExitCode::usage, "{}: {}: is damaged: its checksum differs", path_of(t),
                    tensors[t].name);
  });
  return bytes;
}

template <class T>
Size read_tensors(const std::string& path, const Communicator& ranks, const Engine<T>& engine,
                  Size piece) {
  std::optional<CheckpointFile> file;
  std::vector<TensorSource> from;
  collectively(ranks, [&] {
    file.emplace(path);
    const std::vector<CheckpointTensor> tensors = checkpoint_tensors(engine.plan());
    check_tensors(*file, tensors);
    for (const CheckpointTensor& tensor : tensors) {
      const StoredTensor& stored = file->tensors().at(tensor.name);
      from.push_back({{{&file->file(), stored.array}}, {}, stored.checksum});
    }
  });
  return read_tensors(from, ranks, engine, piece);
}

void check_same_contents(const std::string& path, const Communicator& ranks) {
  constexpr std::uintmax_t most = 4 << 20;
  const std::uint64_t mine = collectively(ranks, [&] {
    std::string begin(std::min(std::filesystem::file_size(path), most), '\0');
    OpenFile(path, O_RDONLY | O_NONBLOCK).read(0, begin.data(), std::ssize(begin));
    return hash_of_text(begin);
  });
  const std::uint64_t first = broadcast_json(ranks, mine);
  collectively(ranks, [&] {
    if (mine != first)
      throw Error(ExitCode::usage, "{}: has other contents on rank {} than on rank 0", path,
                  ranks.rank());
  });
}

#define TESSERA_INSTANTIATE(T)                                                                 \
  template std::vector<std::uint64_t> write_tensors(const TensorFile&, const Engine<T>&, Size, \
                                                    Size);                                     \
  template void Snapshot::take(const Engine<T>&, Size);                                        \
  template Size read_tensors(const std::vector<TensorSource>&, const Communicator&,            \
                             const Engine<T>&, Size);                                          \
  template Size read_tensors(const std::string&, const Communicator&, const Engine<T>&, Size);
TESSERA_FOR_COMPUTE_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
