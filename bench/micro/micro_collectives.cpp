// SPDX-License-Identifier: Apache-2.0
// Every collective over every axis, through a Communicator and, where the memory is the host's,
// through MPI itself. Both are checked.
#include <memory>

#include <fmt/format.h>
#include <mpi.h>

#include <tessera/base/split.hpp>
#include <tessera/base/view.hpp>
#include <tessera/comm/detail/mpi_handle.hpp>

#include "measure/wire_model.hpp"
#include "micro/micro.hpp"
#include "micro/micro_check.hpp"
#include "micro/micro_raw.hpp"

namespace tessera::bench {
namespace {

/// The ranks of an axis, with the memory of one collective over them.
struct Ring {
  Communicator ranks;
  std::shared_ptr<MpiHandle> raw{};  ///< the same ranks
  Size n = 1;
  Size rank = 0;
  Vector<float> whole{};  ///< the full logical buffer
  Vector<float> share{};  ///< this rank's part of it
  Range own{};            ///< where that lies
};

/// Whole shares: raw MPI has no others in its simple calls.
Size elements_of(Size bytes, Size ranks) { return (bytes / 4 + ranks - 1) / ranks * ranks; }

Ring make_ring(const Communicator& ranks, const std::shared_ptr<MpiHandle>& raw, Size elements) {
  Ring ring{ranks, raw, ranks.size(), ranks.rank()};
  const Size part = elements / ring.n;
  ring.whole = Vector<float>("tessera::bench::whole", elements);
  ring.share = Vector<float>("tessera::bench::share", part);
  ring.own = {ring.rank * part, part};
  return ring;
}

/// What one operation does, how it starts, and what must come out.
struct Exchange {
  Operation operation;
  std::function<void()> prepare, through_communicator, through_mpi;
  std::function<Size()> wrong;
  std::function<Size()> wrong_through_mpi{};  ///< where that leaves the result elsewhere
};

Exchange all_reduce(const Ring& r) {
  return {Operation::all_reduce,
          [=] { fill_with(r.whole, [=](Size i) { return pattern(r.rank, i); }); },
          [=] { r.ranks.all_reduce(r.whole); },
          [=] {
            MPI_Allreduce(MPI_IN_PLACE, r.whole.data(), static_cast<int>(r.whole.extent(0)),
                          MPI_FLOAT, MPI_SUM, r.raw->get());
          },
          [=] { return count_wrong_in(r.whole, [=](Size i) { return pattern_sum(r.n, i); }); }};
}

Exchange reduce_scatter(const Ring& r) {
  return {Operation::reduce_scatter,
          [=] { fill_with(r.whole, [=](Size i) { return pattern(r.rank, i); }); },
          [=] { r.ranks.reduce_scatter(r.whole, r.share); },
          [=] {
            MPI_Reduce_scatter_block(r.whole.data(), r.share.data(),
                                     static_cast<int>(r.share.extent(0)), MPI_FLOAT, MPI_SUM,
                                     r.raw->get());
          },
          [=] {
            return count_wrong_in(r.share,
                                  [=](Size i) { return pattern_sum(r.n, r.own.begin + i); });
          }};
}

/// A Communicator leaves the share where it belongs, MPI at the beginning.
Exchange reduce_scatter_in_place(const Ring& r) {
  const Size part = r.own.count;
  const auto wrong_at = [=](Size begin) {
    const auto share = Kokkos::subview(r.whole, Kokkos::make_pair(begin, begin + part));
    return count_wrong_in(share, [=](Size i) { return pattern_sum(r.n, r.own.begin + i); });
  };
  return {Operation::reduce_scatter,
          [=] { fill_with(r.whole, [=](Size i) { return pattern(r.rank, i); }); },
          [=] { r.ranks.reduce_scatter(r.whole); },
          [=] {
            MPI_Reduce_scatter_block(MPI_IN_PLACE, r.whole.data(), static_cast<int>(part),
                                     MPI_FLOAT, MPI_SUM, r.raw->get());
          },
          [=] { return wrong_at(r.own.begin); },
          [=] { return wrong_at(0); }};
}

/// Share p of what comes out is rank p's.
Exchange all_gather(const Ring& r) {
  const Size part = r.own.count;
  return {
      Operation::all_gather,
      [=] { fill_with(r.share, [=](Size i) { return pattern(r.rank, i); }); },
      [=] { r.ranks.all_gather(r.share, r.whole); },
      [=] {
        const int count = static_cast<int>(part);
        MPI_Allgather(r.share.data(), count, MPI_FLOAT, r.whole.data(), count, MPI_FLOAT,
                      r.raw->get());
      },
      [=] { return count_wrong_in(r.whole, [=](Size i) { return pattern(i / part, i % part); }); }};
}

Exchange broadcast(const Ring& r) {
  return {
      Operation::broadcast, [=] { fill_with(r.whole, [=](Size i) { return pattern(r.rank, i); }); },
      [=] { r.ranks.broadcast(r.whole, 0); },
      [=] {
        MPI_Bcast(r.whole.data(), static_cast<int>(r.whole.extent(0)), MPI_FLOAT, 0, r.raw->get());
      },
      [=] { return count_wrong_in(r.whole, [](Size i) { return pattern(0, i); }); }};
}

/// Part p of what arrives comes from rank p, where it was this rank's part.
Exchange all_to_all(const Ring& r) {
  const Vector<float> received("tessera::bench::received", r.whole.extent(0));
  const Size part = r.own.count;
  const std::vector<Size> counts(static_cast<std::size_t>(r.n), part);
  return {Operation::all_to_all,
          [=] { fill_with(r.whole, [=](Size i) { return pattern(r.rank, i); }); },
          [=] { r.ranks.all_to_all(r.whole, counts, received, counts); },
          [=] {
            const int count = static_cast<int>(part);
            MPI_Alltoall(r.whole.data(), count, MPI_FLOAT, received.data(), count, MPI_FLOAT,
                         r.raw->get());
          },
          [=] {
            return count_wrong_in(
                received, [=](Size i) { return pattern(i / part, r.own.begin + i % part); });
          }};
}

struct Kind {
  const char* name;
  Exchange (*make)(const Ring&);
};

constexpr Kind kinds[] = {{"all_reduce", all_reduce},
                          {"reduce_scatter", reduce_scatter},
                          {"reduce_scatter_in_place", reduce_scatter_in_place},
                          {"all_gather", all_gather},
                          {"broadcast", broadcast},
                          {"all_to_all", all_to_all}};

MicroCase make_case(const Ring& ring, const Kind& kind, bool through_mpi) {
  const Exchange exchange = kind.make(ring);
  const double bytes = static_cast<double>(ring.whole.extent(0)) * sizeof(float);
  const auto call = through_mpi ? exchange.through_mpi : exchange.through_communicator;
  const auto wrong =
      through_mpi && exchange.wrong_through_mpi ? exchange.wrong_through_mpi : exchange.wrong;
  return {call,
          {{"algbw_bytes_per_second", bytes},
           {"busbw_bytes_per_second", bytes * wire_factor(exchange.operation, ring.n)}},
          [=] {
            exchange.prepare();
            call();
            return wrong();
          }};
}

void add_exchanges(MicroContext& context, const Communicator& ranks,
                   const std::shared_ptr<MpiHandle>& raw, Size bytes) {
  const Size elements = elements_of(bytes, ranks.size());
  for (const Kind& kind : kinds)
    for (const bool through_mpi : {false, true}) {
      if (through_mpi && !raw) continue;
      context.add(fmt::format("{}/{}/axis:{}/bytes:{}", through_mpi ? "mpi" : "tessera", kind.name,
                              ranks.axis(), elements * 4),
                  [=] { return make_case(make_ring(ranks, raw, elements), kind, through_mpi); });
    }
}

}  // namespace

void add_collective_benchmarks(MicroContext& context) {
  const Mesh& mesh = context.mesh();
  for (const Axis& axis : mesh.shape().axes()) {
    if (axis.size == 1) continue;
    const std::shared_ptr<MpiHandle> raw = raw_axis(mesh, axis.name);
    for (const Size bytes : context.options().bytes)
      add_exchanges(context, mesh.axis(axis.name), raw, bytes);
  }
}

}  // namespace tessera::bench
