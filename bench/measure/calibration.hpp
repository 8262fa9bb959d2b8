// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/comm/communicator.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera::bench {

struct AllReduceTime {
  Size payload_bytes = 0;
  double seconds = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(AllReduceTime, payload_bytes, seconds)

/// What some ranks can do at most when all of them are busy.
struct Calibration {
  Size ranks = 1;
  DType dtype = DType::float32;
  double gemm_flops_per_second = 0;       ///< best rate of a square product, of the slowest rank
  std::vector<AllReduceTime> all_reduce;  ///< of a small and a large one; none on one rank
  double alpha = 0;                       ///< seconds of a round
  double beta = 0;                        ///< seconds of a byte on the wire
};

/// Collective over `ranks`.
Calibration calibrate(const Communicator& ranks, DType dtype, Size gemm_size);

/// The best rate of a square product, of the slowest rank. Collective over `ranks`.
double gemm_rate(const Communicator& ranks, DType dtype, Size gemm_size, Size repetitions);

/// Seconds of a step from the plan and the calibration alone.
struct Prediction {
  double step_seconds = 0;  ///< the sum of both parts
  double compute_seconds = 0;
  double communication_seconds = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Prediction, step_seconds, compute_seconds, communication_seconds)
/// The FLOPs at the calibrated rate, and the calls of a step, none of them hidden behind anything.
Prediction predict(const Plan& plan, const Calibration& calibration);

nlohmann::json to_json(const Calibration& calibration);

}  // namespace tessera::bench
