// SPDX-License-Identifier: Apache-2.0
// Every collective over every axis, and a round trip of messages between neighbours. All results
// are checked.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include <tessera/base/view.hpp>
#include <tessera/predict/wire_model.hpp>

#include "micro/micro.hpp"
#include "micro/micro_check.hpp"

namespace tessera::bench {
namespace {

/// The ranks of an axis, and the buffers of one collective over them.
struct Ring {
  Communicator ranks;
  Size n, rank;
  Size part;                 ///< elements of a rank's share
  std::vector<Size> counts;  ///< elements of each share
  Vector<float> whole;       ///< (n * part) the full logical buffer
  Vector<float> received;    ///< (n * part)
  Vector<float> share;       ///< (part)
  Vector<float> own;         ///< this rank's share in `whole`

  Ring(const Communicator& axis, Size elements)
      : ranks(axis),
        n(ranks.size()),
        rank(ranks.rank()),
        part(elements / n),
        counts(static_cast<std::size_t>(n), part),
        whole("tessera::bench::whole", elements),
        received("tessera::bench::received", elements),
        share("tessera::bench::share", part),
        own(Kokkos::subview(whole, Kokkos::make_pair(rank * part, (rank + 1) * part))) {}

  int partner() const { return static_cast<int>(rank ^ 1); }  ///< in a round trip
};

/// A collective: its input, its output and the values that the output must have.
struct Collective {
  const char* name;
  std::optional<Operation> operation;  ///< none: a round trip
  Vector<float> Ring::*in;
  Vector<float> Ring::*out;
  float (*expected)(const Ring& r, Size i);
  void (*call)(const Ring& r);
};

float sum_of_own(const Ring& r, Size i) { return pattern_sum(r.n, r.rank * r.part + i); }

/// The lower of two neighbours sends its elements, and the other one sends back what it received. A
/// last rank without a neighbour does nothing.
void round_trip(const Ring& r) {
  if (r.partner() >= r.n) return;
  if (r.rank < r.partner()) r.ranks.send(r.whole, r.partner(), 0);
  r.ranks.receive(r.received, r.partner(), 0);
  if (r.rank > r.partner()) r.ranks.send(r.received, r.partner(), 0);
}

const Collective collectives[] = {
    {"all_reduce", Operation::all_reduce, &Ring::whole, &Ring::whole,
     [](const Ring& r, Size i) { return pattern_sum(r.n, i); },
     [](const Ring& r) { r.ranks.all_reduce(r.whole); }},
    {"reduce_scatter", Operation::reduce_scatter, &Ring::whole, &Ring::share, sum_of_own,
     [](const Ring& r) { r.ranks.reduce_scatter(r.whole, r.share); }},
    {"reduce_scatter_in_place", Operation::reduce_scatter, &Ring::whole, &Ring::own, sum_of_own,
     [](const Ring& r) { r.ranks.reduce_scatter(r.whole); }},
    // Share p of the result is rank p's.
    {"all_gather", Operation::all_gather, &Ring::share, &Ring::whole,
     [](const Ring& r, Size i) { return pattern(i / r.part, i % r.part); },
     [](const Ring& r) { r.ranks.all_gather(r.share, r.whole); }},
    {"broadcast", Operation::broadcast, &Ring::whole, &Ring::whole,
     [](const Ring&, Size i) { return pattern(0, i); },
     [](const Ring& r) { r.ranks.broadcast(r.whole, 0); }},
    // Part p of the result comes from rank p.
    {"all_to_all", Operation::all_to_all, &Ring::whole, &Ring::received,
     [](const Ring& r, Size i) { return pattern(i / r.part, r.rank * r.part + i % r.part); },
     [](const Ring& r) { r.ranks.all_to_all(r.whole, r.counts, r.received, r.counts); }},
    {"ping_pong", std::nullopt, &Ring::whole, &Ring::received,
     [](const Ring& r, Size i) {
       return r.partner() < r.n ? pattern(std::min<Size>(r.rank, r.partner()), i) : 0.0F;
     },
     round_trip},
};

MicroCase make_case(const Ring& ring, const Collective& collective) {
  const double trips = collective.operation ? 1 : 2;
  const double bytes = trips * static_cast<double>(ring.whole.extent(0)) * sizeof(float);
  const double factor = collective.operation ? wire_factor(*collective.operation, ring.n) : 1;
  return {.work = [=] { collective.call(ring); },
          .rates = {{"algbw_bytes_per_second", bytes}, {"busbw_bytes_per_second", bytes * factor}},
          .count_wrong =
              [=] {
                fill_with(ring.*collective.in, [&](Size i) { return pattern(ring.rank, i); });
                collective.call(ring);
                return count_wrong_in(ring.*collective.out,
                                      [&](Size i) { return collective.expected(ring, i); });
              }};
}

}  // namespace

void add_collective_benchmarks(MicroContext& context) {
  for (const auto& [name, n] : context.mesh().shape().axes()) {
    if (n == 1) continue;
    const Communicator ranks = context.mesh().axis(name);
    for (const Size bytes : context.options().bytes) {
      const Size elements = (bytes / 4 + n - 1) / n * n;  // all shares are equal
      for (const Collective& collective : collectives)
        context.add(fmt::format("tessera/{}/axis:{}/bytes:{}", collective.name, name, elements * 4),
                    [=] {
                      return make_case({ranks, elements}, collective);
                    });
    }
  }
}

}  // namespace tessera::bench
