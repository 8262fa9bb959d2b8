// SPDX-License-Identifier: Apache-2.0
// Every collective over every axis, and a round trip of messages between neighbours: through a
// Communicator and, in host memory, directly through MPI. All results are checked.
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <mpi.h>

#include <tessera/base/view.hpp>
#include <tessera/comm/detail/mpi_handle.hpp>
#include <tessera/predict/wire_model.hpp>
#include <tessera/process/wait_limit.hpp>
#include <tessera/trace/waits.hpp>

#include "micro/micro.hpp"
#include "micro/micro_check.hpp"

namespace tessera::bench {
namespace {

/// Returns the ranks of an axis for direct calls of MPI; null for device memory, which not every
/// MPI accepts. Collective.
std::shared_ptr<MpiHandle> raw_axis(const Mesh& mesh, const std::string& axis) {
  if (!Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemSpace>::accessible) return nullptr;
  const WaitLimit limit("a split", timeout_seconds());
  const int color = static_cast<int>(group_of(mesh.shape(), axis, mesh.rank()).front());
  return std::make_shared<MpiHandle>(
      MpiHandle::split(MPI_COMM_WORLD, color, static_cast<int>(mesh.rank()), Site::current()));
}

/// The ranks of an axis, and the buffers of one collective over them.
struct Ring {
  Communicator ranks;
  std::shared_ptr<MpiHandle> raw;  ///< the same ranks; null for device memory
  Size n, rank;
  Size part;                 ///< elements of a rank's share
  std::vector<Size> counts;  ///< elements of each share
  Vector<float> whole;       ///< (n * part) the full logical buffer
  Vector<float> received;    ///< (n * part)
  Vector<float> share;       ///< (part)
  /// The shares of rank 0 and of this rank in `whole`.
  Vector<float> first, own;

  Ring(const Communicator& axis, const std::shared_ptr<MpiHandle>& raw_ranks, Size elements)
      : ranks(axis),
        raw(raw_ranks),
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
  int partner() const { return static_cast<int>(rank ^ 1); }  ///< in a round trip
};

/// A collective: its input, its output and the values that the output must have.
struct Collective {
  const char* name;
  std::optional<Operation> operation;  ///< none: a round trip
  Vector<float> Ring::*in;
  Vector<float> Ring::*out;
  float (*expected)(const Ring& r, Size i);
  void (*through_communicator)(const Ring& r);
  void (*through_mpi)(const Ring& r);
  Vector<float> Ring::*out_of_mpi = out;
};

float sum_of_own(const Ring& r, Size i) { return pattern_sum(r.n, r.rank * r.part + i); }

/// The lower of two neighbours sends its elements, and the other one sends back what it received. A
/// last rank without a neighbour does nothing. `send(view)` and `receive(view)`: with the
/// neighbour.
template <class Send, class Receive>
void round_trip(const Ring& r, const Send& send, const Receive& receive) {
  if (r.partner() >= r.n) return;
  if (r.rank < r.partner()) send(r.whole);
  receive(r.received);
  if (r.rank > r.partner()) send(r.received);
}

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
    // A Communicator leaves the share at the rank's place, MPI at the beginning.
    {"reduce_scatter_in_place", Operation::reduce_scatter, &Ring::whole, &Ring::own, sum_of_own,
     [](const Ring& r) { r.ranks.reduce_scatter(r.whole); },
     [](const Ring& r) {
       MPI_Reduce_scatter_block(MPI_IN_PLACE, r.whole.data(), r.count(), MPI_FLOAT, MPI_SUM,
                                r.raw->get());
     },
     &Ring::first},
    // Share p of the result is rank p's.
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
    // Part p of the result comes from rank p.
    {"all_to_all", Operation::all_to_all, &Ring::whole, &Ring::received,
     [](const Ring& r, Size i) { return pattern(i / r.part, r.rank * r.part + i % r.part); },
     [](const Ring& r) { r.ranks.all_to_all(r.whole, r.counts, r.received, r.counts); },
     [](const Ring& r) {
       MPI_Alltoall(r.whole.data(), r.count(), MPI_FLOAT, r.received.data(), r.count(), MPI_FLOAT,
                    r.raw->get());
     }},
    {"ping_pong", std::nullopt, &Ring::whole, &Ring::received,
     [](const Ring& r, Size i) {
       return r.partner() < r.n ? pattern(std::min<Size>(r.rank, r.partner()), i) : 0.0F;
     },
     [](const Ring& r) {
       round_trip(
           r, [&](const Vector<float>& v) { r.ranks.send(v, r.partner(), 0); },
           [&](const Vector<float>& v) { r.ranks.receive(v, r.partner(), 0); });
     },
     [](const Ring& r) {
       const int count = static_cast<int>(r.whole.extent(0)), partner = r.partner();
       round_trip(
           r,
           [&](const Vector<float>& v) {
             MPI_Send(v.data(), count, MPI_FLOAT, partner, 0, r.raw->get());
           },
           [&](const Vector<float>& v) {
             MPI_Recv(v.data(), count, MPI_FLOAT, partner, 0, r.raw->get(), MPI_STATUS_IGNORE);
           });
     }},
};

MicroCase make_case(const Ring& ring, const Collective& collective, bool through_mpi) {
  const double trips = collective.operation ? 1 : 2;
  const double bytes = trips * static_cast<double>(ring.whole.extent(0)) * sizeof(float);
  const double factor = collective.operation ? wire_factor(*collective.operation, ring.n) : 1;
  const auto call = through_mpi ? collective.through_mpi : collective.through_communicator;
  const auto out = through_mpi ? collective.out_of_mpi : collective.out;
  return {.work = [=] { call(ring); },
          .rates = {{"algbw_bytes_per_second", bytes}, {"busbw_bytes_per_second", bytes * factor}},
          .count_wrong =
              [=] {
                fill_with(ring.*collective.in, [&](Size i) { return pattern(ring.rank, i); });
                call(ring);
                return count_wrong_in(ring.*out,
                                      [&](Size i) { return collective.expected(ring, i); });
              }};
}

}  // namespace

void add_collective_benchmarks(MicroContext& context) {
  for (const auto& [axis, n] : context.mesh().shape().axes()) {
    if (n == 1) continue;
    const Communicator ranks = context.mesh().axis(axis);
    const std::shared_ptr<MpiHandle> raw = raw_axis(context.mesh(), axis);
    for (const Size bytes : context.options().bytes) {
      // All shares are equal, as the simple calls of MPI require.
      const Size elements = (bytes / 4 + n - 1) / n * n;
      for (const Collective& collective : collectives)
        for (const bool through_mpi : {false, true}) {
          if (through_mpi && !raw) continue;
          context.add(fmt::format("{}/{}/axis:{}/bytes:{}", through_mpi ? "mpi" : "tessera",
                                  collective.name, axis, elements * 4),
                      [=] {
                        return make_case({ranks, raw, elements}, collective, through_mpi);
                      });
        }
    }
  }
}

}  // namespace tessera::bench
