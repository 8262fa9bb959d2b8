// SPDX-License-Identifier: Apache-2.0
// Every collective over every axis, through a Communicator and, where the memory is the host's,
// through MPI itself. Both are checked.
#include <fmt/format.h>
#include <mpi.h>

#include <tessera/base/view.hpp>
#include <tessera/predict/wire_model.hpp>

#include "micro/micro.hpp"
#include "micro/micro_check.hpp"

namespace tessera::bench {
namespace {

/// The ranks of an axis, with the memory of one collective over them.
struct Ring {
  Communicator ranks;
  std::shared_ptr<MpiHandle> raw;
  Size n, rank;
  Size part;                 ///< elements of a rank's share
  std::vector<Size> counts;  ///< of all shares
  Vector<float> whole;       ///< the full logical buffer
  Vector<float> received;    ///< as large
  Vector<float> share;       ///< as large as a rank's share
  /// The shares of rank 0 and of this rank in `whole`.
  Vector<float> first, own;

  Ring(const AxisPoint& point, Size elements)
      : ranks(point.ranks),
        raw(point.raw),
        n(ranks.size()),
        rank(ranks.rank()),
        part(elements / n),
        counts(static_cast<std::size_t>(n), part),
        whole("tessera::bench::whole", elements),
        received("tessera::bench::received", elements),
        share("tessera::bench::share", part),
        first(Kokkos::subview(whole, Kokkos::make_pair(Size{0}, part))),
        own(Kokkos::subview(whole, Kokkos::make_pair(rank * part, (rank + 1) * part))) {}

  int count() const { return static_cast<int>(part); }
};

/// A collective: where each rank's pattern goes in, and what must come out.
struct Collective {
  const char* name;
  Operation operation;
  Vector<float> Ring::*in;
  Vector<float> Ring::*out;
  float (*expected)(const Ring& r, Size i);
  void (*through_communicator)(const Ring& r);
  void (*through_mpi)(const Ring& r);
  Vector<float> Ring::*out_of_mpi = out;
};

float sum_of_own(const Ring& r, Size i) { return pattern_sum(r.n, r.rank * r.part + i); }

const Collective collectives[] = {
    {"all_reduce", Operation::all_reduce, &Ring::whole, &Ring::whole,
     [](const Ring& r, Size i) { return pattern_sum(r.n, i); },
     [](const Ring& r) { r.ranks.all_reduce(r.whole); },
     [](const Ring& r) {
       MPI_Allreduce(MPI_IN_PLACE, r.whole.data(), static_cast<int>(r.whole.extent(0)), MPI_FLOAT,
                     MPI_SUM, r.raw->get());
     }},
    {"reduce_scatter", Operation::reduce_scatter, &Ring::whole, &Ring::share, sum_of_own,
     [](const Ring& r) { r.ranks.reduce_scatter(r.whole, r.share); },
     [](const Ring& r) {
       MPI_Reduce_scatter_block(r.whole.data(), r.share.data(), r.count(), MPI_FLOAT, MPI_SUM,
                                r.raw->get());
     }},
    // A Communicator leaves the share where it belongs, MPI at the beginning.
    {"reduce_scatter_in_place", Operation::reduce_scatter, &Ring::whole, &Ring::own, sum_of_own,
     [](const Ring& r) { r.ranks.reduce_scatter(r.whole); },
     [](const Ring& r) {
       MPI_Reduce_scatter_block(MPI_IN_PLACE, r.whole.data(), r.count(), MPI_FLOAT, MPI_SUM,
                                r.raw->get());
     },
     &Ring::first},
    // Share p of what comes out is rank p's.
    {"all_gather", Operation::all_gather, &Ring::share, &Ring::whole,
     [](const Ring& r, Size i) { return pattern(i / r.part, i % r.part); },
     [](const Ring& r) { r.ranks.all_gather(r.share, r.whole); },
     [](const Ring& r) {
       MPI_Allgather(r.share.data(), r.count(), MPI_FLOAT, r.whole.data(), r.count(), MPI_FLOAT,
                     r.raw->get());
     }},
    {"broadcast", Operation::broadcast, &Ring::whole, &Ring::whole,
     [](const Ring&, Size i) { return pattern(0, i); },
     [](const Ring& r) { r.ranks.broadcast(r.whole, 0); },
     [](const Ring& r) {
       MPI_Bcast(r.whole.data(), static_cast<int>(r.whole.extent(0)), MPI_FLOAT, 0, r.raw->get());
     }},
    // Part p of what arrives comes from rank p, where it was this rank's part.
    {"all_to_all", Operation::all_to_all, &Ring::whole, &Ring::received,
     [](const Ring& r, Size i) { return pattern(i / r.part, r.rank * r.part + i % r.part); },
     [](const Ring& r) { r.ranks.all_to_all(r.whole, r.counts, r.received, r.counts); },
     [](const Ring& r) {
       MPI_Alltoall(r.whole.data(), r.count(), MPI_FLOAT, r.received.data(), r.count(), MPI_FLOAT,
                    r.raw->get());
     }},
};

MicroCase make_case(const Ring& ring, const Collective& collective, bool through_mpi) {
  const double bytes = static_cast<double>(ring.whole.extent(0)) * sizeof(float);
  const auto call = through_mpi ? collective.through_mpi : collective.through_communicator;
  const auto out = through_mpi ? collective.out_of_mpi : collective.out;
  return {[=] { call(ring); },
          {{"algbw_bytes_per_second", bytes},
           {"busbw_bytes_per_second", bytes * wire_factor(collective.operation, ring.n)}},
          [=] {
            fill_with(ring.*collective.in, [&](Size i) { return pattern(ring.rank, i); });
            call(ring);
            return count_wrong_in(ring.*out, [&](Size i) { return collective.expected(ring, i); });
          }};
}

}  // namespace

void add_collective_benchmarks(MicroContext& context) {
  for (const AxisPoint& point : context.axis_points()) {
    // Whole shares: raw MPI has no others in its simple calls.
    const Size n = point.ranks.size(), elements = (point.bytes / 4 + n - 1) / n * n;
    for (const Collective& collective : collectives)
      for (const bool through_mpi : {false, true}) {
        if (through_mpi && !point.raw) continue;
        context.add(fmt::format("{}/{}/axis:{}/bytes:{}", through_mpi ? "mpi" : "tessera",
                                collective.name, point.ranks.axis(), elements * 4),
                    [=] {
                      return make_case({point, elements}, collective, through_mpi);
                    });
      }
  }
}

}  // namespace tessera::bench
