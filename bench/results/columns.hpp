// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tessera::bench {

/// A key of a summary row, which is also a column of cases.csv. `from` is the JSON pointer of its
/// value in the case's result; without it, the value is derived. Values are numbers unless
/// `is_text`.
struct Column {
  const char* key;
  const char* from = nullptr;
  bool is_text = false;
};

/// In the order of cases.csv.
inline constexpr Column columns[] = {
    {"id", "/id", true},
    {"label", "/label", true},
    {"status", "/status", true},
    {"reason", "/reason", true},
    {"strategy", "/factors/strategy", true},
    {"mesh", "/factors/mesh", true},
    {"ranks", "/factors/ranks"},
    {"nodes", "/case/nodes/count"},
    {"global_batch", "/factors/global_batch"},
    {"batch_per_rank"},
    {"microbatches", "/factors/microbatches"},
    {"other_factors"},
    {"step_seconds_median", "/step_seconds/median"},
    {"step_seconds_mad", "/step_seconds/mad"},
    {"step_seconds_min", "/step_seconds/min"},
    {"step_seconds_p95", "/step_seconds/p95"},
    {"step_seconds_max", "/step_seconds/max"},
    {"step_seconds_ci95_low", "/step_seconds/ci95_low"},
    {"step_seconds_ci95_high", "/step_seconds/ci95_high"},
    {"step_seconds_n", "/step_seconds/n"},
    {"step_seconds_outliers", "/step_seconds/outliers"},
    {"samples_per_second", "/samples_per_second"},
    {"baseline"},
    {"baseline_ranks"},
    {"baseline_step_seconds"},
    {"scaling"},
    {"speedup"},
    {"speedup_low"},
    {"speedup_high"},
    {"efficiency"},
    {"efficiency_low"},
    {"efficiency_high"},
    {"loss_verdict", "/loss/verdict", true},
    {"loss_largest_relative_difference", "/loss/largest_relative_difference"},
    {"final_loss"},
    {"instrumented_step_seconds", "/breakdown/step_seconds"},
    {"compute_seconds", "/breakdown/compute/mean_rank_seconds"},
    {"communication_seconds", "/breakdown/communication/mean_rank_seconds"},
    {"idle_seconds", "/breakdown/idle/mean_rank_seconds"},
    {"optimizer_seconds", "/breakdown/optimizer/mean_rank_seconds"},
    {"other_seconds", "/breakdown/other/mean_rank_seconds"},
    {"product_seconds", "/breakdown/products/mean_rank_seconds"},
    {"communication_share"},
    {"product_share"},
    {"flops_per_second", "/compute/flops_per_second"},
    {"flops_per_second_per_rank", "/compute/flops_per_second_per_rank"},
    {"mfu", "/compute/mfu"},
    {"planned_bytes", "/memory/planned_bytes"},
    {"measured_bytes", "/memory/measured_bytes"},
    {"predicted_step_seconds", "/prediction/step_seconds"},
    {"checkpoint_bytes", "/checkpoint/bytes"},
    {"checkpoint_write_seconds", "/checkpoint/write_seconds"},
    {"checkpoint_write_bytes_per_second", "/checkpoint/write_bytes_per_second"},
    {"checkpoint_exposed_seconds", "/checkpoint/exposed_seconds"},
    {"checkpoint_read_seconds", "/checkpoint/read_seconds"},
    {"attempt", "/attempt"},
    {"launch", "/launch", true},
    {"simulated", "/simulated", true},
};

}  // namespace tessera::bench
