// SPDX-License-Identifier: Apache-2.0
// Writes and reads the tensors of a checkpoint from all ranks.
#include <algorithm>

#include <tessera/base/alias.hpp>
#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/checksums.hpp>
#include <tessera/checkpoint/contents.hpp>
#include <tessera/checkpoint/hyperslabs.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/engine/local_tensors.hpp>

namespace tessera {
namespace {

using HostSizes = Kokkos::View<Size*, Kokkos::HostSpace>;

/// Returns piece `number` of a range.
Range piece_of(Range all, Size number, Size elements) {
  return intersection(all, {all.begin + number * elements, elements});
}

/// Adds the checksum of a range of a block's elements to `sum`.
template <class S>
void add_hash_of(const CheckpointTensor& tensor, const Piece& block, Range elements,
                 const S* values, Size& sum) {
  for_each_run(tensor.shape, block, elements, [&](Size first, Size place, Size count) {
    add_hash(sum, hash_of_run(values + (first - elements.begin), count, place));
  });
}

/// Keeps the first failure, so that a rank still makes the same collective calls as the others.
class FirstOutcome {
 public:
  template <class F>
  void attempt(const F& f) {
    Outcome outcome = outcome_of(f);
    if (!first_.failed()) first_ = std::move(outcome);
  }
  void raise(const Communicator& ranks, Site site = Site::current()) const {
    raise_first_failure(ranks, first_, site);
  }

 private:
  Outcome first_;
};

/// Returns the number of calls per tensor, which the rank with the largest part decides.
HostSizes rounds_of(const std::vector<CheckpointPart>& parts, std::size_t tensors, Size elements,
                    const Communicator& ranks) {
  const HostSizes rounds("tessera::checkpoint_rounds", tensors);
  for (const CheckpointPart& part : parts)
    rounds(part.tensor) = (part.written().count + elements - 1) / elements;
  ranks.all_reduce(rounds, ReduceOp::max);
  return rounds;
}

}  // namespace

void write_checksums(const std::string& path, const Communicator& ranks,
                     const std::vector<CheckpointTensor>& tensors, const std::vector<Size>& parts) {
  const HostSizes sums("tessera::checkpoint_sums", parts.size());
  std::copy(parts.begin(), parts.end(), sums.data());
  ranks.all_reduce(sums);
  collectively(ranks, [&] {
    if (ranks.rank() != 0) return;
    Hdf5File file = Hdf5File::change(path);
    for (std::size_t t = 0; t < tensors.size(); ++t)
      file.set_attribute(tensors[t].name, checksum_attribute, sums(t));
    file.close();
  });
}

template <class T>
Size write_tensors(const std::string& path, const Communicator& ranks, const Engine<T>& engine,
                   const AfterTensor& after_tensor, Size piece) {
  using S = StateOf<T>;
  const Size elements = std::max<Size>(piece / static_cast<Size>(sizeof(S)), 1);
  const std::vector<CheckpointTensor> tensors = checkpoint_tensors(engine.plan());
  const std::vector<CheckpointPart> parts = checkpoint_parts(engine.plan(), ranks.rank());
  const HostSizes rounds = rounds_of(parts, tensors.size(), elements, ranks);
  std::vector<Size> sums(tensors.size());
  Size bytes = 0;
  FirstOutcome outcome;
  {
    Hdf5File file = collectively(ranks, [&] { return Hdf5File::change(path, ranks); });
    auto part = parts.begin();
    for (Size t = 0; t < static_cast<Size>(tensors.size()); ++t) {
      const bool mine = part != parts.end() && part->tensor == t;
      for (Size round = 0; round < rounds(t); ++round)
        outcome.attempt([&] {
          const Range range = mine ? piece_of(part->written(), round, elements) : Range{};
          if (range.count == 0) return file.write(tensors[t].name, tensors[t].type, {}, nullptr);
          const LocalTensor<S> local = local_tensor(engine, part->part);
          const auto host = Kokkos::create_mirror_view_and_copy(
              Kokkos::HostSpace(),
              alias_vector(local.values.data() + range.begin - local.kept.begin, range.count));
          add_hash_of(tensors[t], local.piece, range, host.data(), sums[t]);
          bytes += range.count * static_cast<Size>(sizeof(S));
          file.write(tensors[t].name, tensors[t].type, hyperslabs_of(local.piece, range),
                     host.data());
          check_finite("a value of " + tensors[t].name, host.data(), range.count);
        });
      if (mine) ++part;
      if (after_tensor) after_tensor();
    }
    outcome.attempt([&] { file.close(); });
    outcome.raise(ranks);
  }
  write_checksums(path, ranks, tensors, sums);
  return bytes;
}

namespace {

/// Reads the parts of these tensors that this rank keeps. Their types are those in the file.
template <class T>
Size read_parts(const std::string& path, const Communicator& ranks, const Engine<T>& engine,
                const std::vector<CheckpointTensor>& tensors, Size piece) {
  using S = StateOf<T>;
  const HostSizes sums("tessera::checkpoint_sums", tensors.size());
  Size bytes = 0;
  // Every rank reads alone, so that an error on one rank cannot block others inside HDF5.
  collectively(ranks, [&] {
    const Hdf5File file = Hdf5File::open(path);
    check_arrays(file, path, arrays_of(tensors), "in this run");
    const auto read_as = [&]<class F>(F, const CheckpointPart& part) {
      const CheckpointTensor& tensor = tensors[part.tensor];
      const LocalTensor<S> local = local_tensor(engine, part.part);
      const Size elements = std::max<Size>(piece / static_cast<Size>(sizeof(F)), 1);
      const Size pieces = (local.kept.count + elements - 1) / elements;
      for (Size number = 0; number < pieces; ++number) {
        const Range range = piece_of(local.kept, number, elements);
        const auto values =
            alias_vector(local.values.data() + range.begin - local.kept.begin, range.count);
        const auto host = Kokkos::create_mirror_view(Kokkos::HostSpace(), values);
        std::vector<F> converted;
        F* stored = nullptr;
        if constexpr (std::is_same_v<F, S>) {
          stored = host.data();
        } else {
          converted.resize(range.count);
          stored = converted.data();
        }
        file.read(tensor.name, dtype_of<F>(), hyperslabs_of(local.piece, range), stored);
        bytes += range.count * static_cast<Size>(sizeof(F));
        const Range counted = intersection(range, part.written());
        add_hash_of(tensor, local.piece, counted, stored + (counted.begin - range.begin),
                    sums(part.tensor));
        std::transform(converted.begin(), converted.end(), host.data(),
                       [](F value) { return static_cast<S>(value); });
        Kokkos::deep_copy(values, host);
      }
    };
    for (const CheckpointPart& part : checkpoint_parts(engine.plan(), ranks.rank())) {
      if (part.tensor >= std::ssize(tensors)) continue;
      tensors[part.tensor].type == DType::float64 ? read_as(double{}, part)
                                                  : read_as(float{}, part);
    }
  });
  ranks.all_reduce(sums);
  collectively(ranks, [&] {
    if (ranks.rank() != 0) return;
    const Hdf5File file = Hdf5File::open(path);
    for (std::size_t t = 0; t < tensors.size(); ++t)
      check_hash(file, path, tensors[t].name, sums(t));
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
  template Size write_tensors(const std::string&, const Communicator&, const Engine<T>&,       \
                              const AfterTensor&, Size);                                       \
  template Size read_tensors(const std::string&, const Communicator&, const Engine<T>&, Size); \
  template Size read_parameters(const std::string&, const Communicator&, const Engine<T>&, DType);
TESSERA_FOR_COMPUTE_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
