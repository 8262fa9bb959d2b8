// SPDX-License-Identifier: Apache-2.0
// Every collective over every axis, through a Communicator and, where the memory is the host's,
// through MPI itself. Both are checked.
#include <memory>

#include <fmt/format.h>
#include <mpi.h>

#include <tessera/base/kokkos_compat.hpp>
#include <tessera/base/split.hpp>
#include <tessera/base/view.hpp>
#include <tessera/comm/mpi_handle.hpp>

#include "breakdown.hpp"
#include "micro.hpp"
#include "wire_model.hpp"

namespace tessera::bench {
namespace {

constexpr bool on_host = Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemSpace>::accessible;

template <class F>
void fill(const Vector<float>& v, const F& value) {
  const auto host = Kokkos::create_mirror_view(v);
  for (Size i = 0; i < static_cast<Size>(v.extent(0)); ++i) host(i) = value(i);
  Kokkos::deep_copy(v, host);
}

template <class F>
Size count_wrong(const Vector<float>& v, const F& expected) {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), v);
  Size wrong = 0;
  for (Size i = 0; i < static_cast<Size>(v.extent(0)); ++i)
    if (host(i) != expected(i)) ++wrong;
  return wrong;
}

/// Small whole numbers, of which sums over ranks are exact.
float pattern(Size i) { return static_cast<float>(i % 13); }

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

Ring make_ring(const MicroContext& context, const std::string& axis,
               const std::shared_ptr<MpiHandle>& raw, Size bytes) {
  const Mesh& mesh = context.mesh();
  Ring ring{mesh.axis(axis)};
  ring.n = ring.ranks.size();
  ring.rank = ring.ranks.rank();
  // Whole shares: raw MPI has no others in its simple calls.
  const Size elements = (bytes / 4 + ring.n - 1) / ring.n * ring.n;
  ring.whole = Vector<float>("tessera::bench::whole", elements);
  ring.share = Vector<float>("tessera::bench::share", elements / ring.n);
  ring.own = {ring.rank * (elements / ring.n), elements / ring.n};
  ring.raw = raw;
  return ring;
}

/// What one operation does, how it starts, and what must come out.
struct Exchange {
  Operation operation;
  std::function<void()> prepare, through_communicator, through_mpi;
  std::function<Size()> wrong;
};

Exchange all_reduce(const Ring& r) {
  const float ranks = static_cast<float>(r.n);
  return {Operation::all_reduce, [=] { fill(r.whole, pattern); },
          [=] { r.ranks.all_reduce(r.whole); },
          [=] {
            MPI_Allreduce(MPI_IN_PLACE, r.whole.data(), static_cast<int>(r.whole.extent(0)),
                          MPI_FLOAT, MPI_SUM, r.raw->get());
          },
          [=] { return count_wrong(r.whole, [=](Size i) { return ranks * pattern(i); }); }};
}

Exchange reduce_scatter(const Ring& r) {
  const float ranks = static_cast<float>(r.n);
  return {Operation::reduce_scatter, [=] { fill(r.whole, pattern); },
          [=] { r.ranks.reduce_scatter(r.whole, r.share); },
          [=] {
            MPI_Reduce_scatter_block(r.whole.data(), r.share.data(),
                                     static_cast<int>(r.share.extent(0)), MPI_FLOAT, MPI_SUM,
                                     r.raw->get());
          },
          [=] {
            return count_wrong(r.share, [=](Size i) { return ranks * pattern(r.own.begin + i); });
          }};
}

Exchange all_gather(const Ring& r) {
  return {Operation::all_gather,
          [=] { fill(r.share, [=](Size i) { return pattern(r.own.begin + i); }); },
          [=] { r.ranks.all_gather(r.share, r.whole); },
          [=] {
            const int count = static_cast<int>(r.share.extent(0));
            MPI_Allgather(r.share.data(), count, MPI_FLOAT, r.whole.data(), count, MPI_FLOAT,
                          r.raw->get());
          },
          [=] { return count_wrong(r.whole, pattern); }};
}

Exchange broadcast(const Ring& r) {
  return {Operation::broadcast,
          [=] { fill(r.whole, [=](Size i) { return r.rank == 0 ? pattern(i) : -1; }); },
          [=] { r.ranks.broadcast(r.whole, 0); },
          [=] {
            MPI_Bcast(r.whole.data(), static_cast<int>(r.whole.extent(0)), MPI_FLOAT, 0,
                      r.raw->get());
          },
          [=] { return count_wrong(r.whole, pattern); }};
}

/// Each rank sends its pattern plus its rank; part p of what arrives comes from rank p.
Exchange all_to_all(const Ring& r) {
  const Vector<float> received("tessera::bench::received", r.whole.extent(0));
  const Size part = r.own.count;
  const std::vector<Size> counts(static_cast<std::size_t>(r.n), part);
  return {Operation::all_to_all,
          [=] { fill(r.whole, [=](Size i) { return pattern(i) + static_cast<float>(r.rank); }); },
          [=] { r.ranks.all_to_all(r.whole, counts, received, counts); },
          [=] {
            const int count = static_cast<int>(part);
            MPI_Alltoall(r.whole.data(), count, MPI_FLOAT, received.data(), count, MPI_FLOAT,
                         r.raw->get());
          },
          [=] {
            return count_wrong(received, [=](Size i) {
              return pattern(r.own.begin + i % part) + static_cast<float>(i / part);
            });
          }};
}

void add_exchange(MicroContext& context, const Ring& ring, const Exchange& exchange) {
  const std::string& axis = ring.ranks.axis();
  const double bytes = static_cast<double>(ring.whole.extent(0)) * sizeof(float);
  const MicroContext::Rates rates{
      {"algbw_bytes_per_second", bytes},
      {"busbw_bytes_per_second", bytes * wire_factor(exchange.operation, ring.n)}};
  const auto add = [&](const std::string& how, const std::function<void()>& call) {
    context.add_checked(
        fmt::format("{}/{}/axis:{}/bytes:{:.0f}", how, name_of(exchange.operation), axis, bytes),
        call,
        [=] {
          exchange.prepare();
          call();
          return exchange.wrong();
        },
        rates);
  };
  add("tessera", exchange.through_communicator);
  if (on_host) add("mpi", exchange.through_mpi);
}

}  // namespace

void add_collective_benchmarks(MicroContext& context) {
  for (const Axis& axis : context.mesh().shape().axes()) {
    if (axis.size == 1) continue;
    const Mesh& mesh = context.mesh();
    const int color = static_cast<int>(group_of(mesh.shape(), axis.name, mesh.rank()).front());
    const auto raw = std::make_shared<MpiHandle>(
        MpiHandle::split(MPI_COMM_WORLD, color, static_cast<int>(mesh.rank()), Site::current()));
    for (const Size bytes : context.options().bytes) {
      const Ring ring = make_ring(context, axis.name, raw, bytes);
      for (const auto& make : {all_reduce, reduce_scatter, all_gather, broadcast, all_to_all})
        add_exchange(context, ring, make(ring));
    }
  }
}

}  // namespace tessera::bench
