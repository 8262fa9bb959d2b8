// SPDX-License-Identifier: Apache-2.0
#include "measure/calibration.hpp"

#include <algorithm>

#include <tessera/base/view.hpp>
#include <tessera/nn/gemm.hpp>
#include <tessera/nn/layer_spec.hpp>
#include <tessera/random/fill.hpp>

#include "measure/breakdown.hpp"
#include "measure/slowest.hpp"
#include "measure/wire_model.hpp"

namespace tessera::bench {
namespace {

/// Seconds of `work` in the best of some repetitions; of the rank for which that is longest.
double best_seconds(const Communicator& ranks, Size repetitions,
                    const std::function<void()>& work) {
  const std::vector<double> seconds = repeat(ranks, 1, repetitions, work);
  return slowest(ranks, {*std::min_element(seconds.begin(), seconds.end())}).front();
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

AllReduceTime time_all_reduce(const Communicator& ranks, Size floats, Size calls) {
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
  const AllReduceTime small = time_all_reduce(ranks, 2, 50),
                      large = time_all_reduce(ranks, Size{1} << 20, 1);
  result.all_reduce = {small, large};
  // Two points determine both: seconds = alpha rounds + beta wire bytes. On a busy machine the
  // large message may be the faster one; then all of it is latency.
  const double wire = wire_factor(Operation::all_reduce, ranks.size());
  const auto bytes = [&](const AllReduceTime& point) {
    return wire * static_cast<double>(point.payload_bytes);
  };
  result.beta = std::max(0.0, (large.seconds - small.seconds) / (bytes(large) - bytes(small)));
  result.alpha =
      (small.seconds - result.beta * bytes(small)) / rounds(Operation::all_reduce, ranks.size());
  return result;
}

Prediction predict(const Plan& plan, const Calibration& calibration) {
  const MeshShape& mesh = plan.input.mesh;
  Prediction prediction;
  prediction.compute_seconds =
      static_cast<double>(plan.flops.total()) /
      (static_cast<double>(mesh.num_ranks()) * calibration.gemm_flops_per_second);
  for (const CollectivePlan& collective : plan.collectives(0)) {
    if (collective.cadence != Cadence::step) continue;
    const auto n = static_cast<Size>(group_of(mesh, collective.axis, 0).size());
    prediction.communication_seconds += calibration.alpha * rounds(collective.operation, n) *
                                            static_cast<double>(collective.calls) +
                                        calibration.beta * wire_factor(collective.operation, n) *
                                            static_cast<double>(collective.payload_bytes);
  }
  prediction.step_seconds = prediction.compute_seconds + prediction.communication_seconds;
  return prediction;
}

nlohmann::json to_json(const Calibration& c) {
  const bool communicates = !c.all_reduce.empty();
  return {{"ranks", c.ranks},
          {"dtype", name_of(c.dtype)},
          {"gemm_flops_per_second", c.gemm_flops_per_second},
          {"all_reduce", communicates ? nlohmann::json(c.all_reduce) : nlohmann::json()},
          {"alpha_seconds", communicates ? nlohmann::json(c.alpha) : nlohmann::json()},
          {"beta_seconds_per_byte", communicates ? nlohmann::json(c.beta) : nlohmann::json()}};
}

}  // namespace tessera::bench
