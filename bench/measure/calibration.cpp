// SPDX-License-Identifier: Apache-2.0
#include "measure/calibration.hpp"

#include <algorithm>
#include <limits>

#include <tessera/base/timer.hpp>
#include <tessera/base/view.hpp>
#include <tessera/nn/gemm.hpp>
#include <tessera/nn/layer_spec.hpp>
#include <tessera/random/fill.hpp>

#include "measure/fits.hpp"
#include "measure/wire_model.hpp"

namespace tessera::bench {
namespace {

/// Seconds of `work` in the best of some repetitions; of the rank for which that is longest.
template <class F>
double best_seconds(const Communicator& ranks, Size repetitions, const F& work) {
  work();
  Kokkos::fence();
  const Kokkos::View<double[1], Kokkos::HostSpace> best("tessera::bench::seconds");
  best(0) = std::numeric_limits<double>::infinity();
  for (Size i = 0; i < repetitions; ++i) {
    ranks.barrier();
    const Timer timer;
    work();
    Kokkos::fence();
    best(0) = std::min(best(0), timer.seconds());
  }
  ranks.all_reduce(best, ReduceOp::max);
  return best(0);
}

template <class T>
double typed_gemm_rate(const Communicator& ranks, Size n, Size repetitions) {
  const Matrix<T> a("tessera::bench::a", n, n), b("tessera::bench::b", n, n),
      c("tessera::bench::c", n, n);
  fill_normal(a, key(1));
  fill_normal(b, key(2));
  const Gemm<T> gemm;
  const double seconds =
      best_seconds(ranks, repetitions, [&] { gemm(Trans::no, Trans::no, 1, a, b, 0, c); });
  return static_cast<double>(GemmShape{n, n, n}.flops()) / seconds;
}

Calibration::Point time_all_reduce(const Communicator& ranks, Size floats, Size calls) {
  const Vector<float> values("tessera::bench::values", floats);
  const double seconds = best_seconds(ranks, 5, [&] {
    for (Size i = 0; i < calls; ++i) ranks.all_reduce(values);
  });
  return {floats * size_of(DType::float32), seconds / static_cast<double>(calls)};
}

}  // namespace

double gemm_rate(const Communicator& ranks, DType dtype, Size gemm_size, Size repetitions) {
  return dtype == DType::float64 ? typed_gemm_rate<double>(ranks, gemm_size, repetitions)
                                 : typed_gemm_rate<float>(ranks, gemm_size, repetitions);
}

Calibration calibrate(const Communicator& ranks, DType dtype, Size gemm_size) {
  Calibration result;
  result.ranks = ranks.size();
  result.dtype = dtype;
  result.gemm_flops_per_second = gemm_rate(ranks, dtype, gemm_size, 10);
  if (ranks.size() == 1) return result;
  result.all_reduce = {time_all_reduce(ranks, 2, 50), time_all_reduce(ranks, Size{1} << 20, 1)};
  std::vector<double> rounds_of, bytes, seconds;
  for (const Calibration::Point& point : result.all_reduce) {
    rounds_of.push_back(rounds(Operation::all_reduce, ranks.size()));
    bytes.push_back(wire_factor(Operation::all_reduce, ranks.size()) *
                    static_cast<double>(point.payload_bytes));
    seconds.push_back(point.seconds);
  }
  if (const auto fit = fit_alpha_beta(rounds_of, bytes, seconds, 2)) {
    result.alpha = fit->alpha;
    result.beta = fit->beta;
  }
  return result;
}

Prediction predict(const Plan& plan, const Calibration& calibration) {
  const MeshShape& mesh = plan.input.mesh;
  Prediction prediction;
  prediction.compute = static_cast<double>(plan.flops.total()) /
                       (static_cast<double>(mesh.num_ranks()) * calibration.gemm_flops_per_second);
  for (const CollectivePlan& collective : plan.collectives(0)) {
    if (collective.cadence != Cadence::step) continue;
    const Size n = group_size(mesh, collective.axis);
    prediction.communication += calibration.alpha * rounds(collective.operation, n) *
                                    static_cast<double>(collective.calls) +
                                calibration.beta * wire_factor(collective.operation, n) *
                                    static_cast<double>(collective.payload_bytes);
  }
  return prediction;
}

nlohmann::json to_json(const Calibration& c) {
  nlohmann::json points;
  for (const Calibration::Point& point : c.all_reduce)
    points.push_back({{"payload_bytes", point.payload_bytes}, {"seconds", point.seconds}});
  const bool communicates = !c.all_reduce.empty();
  return {{"ranks", c.ranks},
          {"dtype", name_of(c.dtype)},
          {"gemm_flops_per_second", c.gemm_flops_per_second},
          {"all_reduce", points},
          {"alpha_seconds", communicates ? nlohmann::json(c.alpha) : nlohmann::json()},
          {"beta_seconds_per_byte", communicates ? nlohmann::json(c.beta) : nlohmann::json()}};
}

}  // namespace tessera::bench
