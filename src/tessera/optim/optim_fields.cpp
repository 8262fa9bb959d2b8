// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <fmt/format.h>

#include <tessera/optim/optim_fields.hpp>

namespace tessera {
namespace {

bool is_sgd(const OptimizerConfig& c) { return c.kind == OptimizerKind::sgd; }
bool is_rmsprop(const OptimizerConfig& c) { return c.kind == OptimizerKind::rmsprop; }
bool is_muon(const OptimizerConfig& c) { return c.kind == OptimizerKind::muon; }
bool is_adamw(const OptimizerConfig& c) { return c.kind == OptimizerKind::adamw || is_muon(c); }
bool is_adam(const OptimizerConfig& c) { return c.kind == OptimizerKind::adam || is_adamw(c); }

bool is_constant(const ScheduleConfig& c) { return c.kind == ScheduleKind::constant; }
bool is_wsd(const ScheduleConfig& c) { return c.kind == ScheduleKind::wsd; }
bool has_powers(const ScheduleConfig& c) {
  return c.kind == ScheduleKind::exponential || c.kind == ScheduleKind::step;
}

/// A kind is often given alone, without the other keys that it needs.
std::string missing_for_kind(const ScheduleConfig& c) {
  if (!is_constant(c) && c.steps == 0) return "needs schedule.steps, its length in steps";
  if (c.kind == ScheduleKind::warmup_cosine && c.warmup_steps == 0)
    return "needs schedule.warmup_steps > 0";
  return is_wsd(c) && c.decay_steps == 0 ? "needs schedule.decay_steps" : "";
}

/// The length of a schedule with an end includes the warm-up.
std::string allowed_warmup(const ScheduleConfig& c) {
  if (!has_end(c.kind) || c.warmup_steps < c.steps) return "";
  return fmt::format("must be below schedule.steps = {}", c.steps);
}

std::string allowed_decay(const ScheduleConfig& c) {
  const Size rest = c.steps - c.warmup_steps;
  if (c.decay_steps > 0 && c.decay_steps <= rest) return "";
  return fmt::format("must be from 1 to {}, schedule.steps less schedule.warmup_steps", rest);
}

}  // namespace

const Fields<OptimizerConfig>& optimizer_fields() {
  using C = OptimizerConfig;
  static const Fields<C> fields{
      {"optimizer.kind", &C::kind, "update rule", Tier::common, fixed},
      {"optimizer.momentum", &C::momentum, "momentum of sgd, below 1", below_one, fixed,
       Rule<C>{is_sgd, "is for sgd only"}},
      {"optimizer.nesterov", &C::nesterov, "Nesterov momentum for sgd",
       Rule<C>{is_sgd, "is for sgd only"},
       Rule<C>{[](const C& c) { return c.momentum > 0; }, "needs optimizer.momentum > 0"}},
      {"optimizer.beta1", &C::beta1, "first-moment decay of adam, adamw and muon, below 1",
       below_one, Rule<C>{is_adam, "is for adam, adamw and muon only"}},
      {"optimizer.beta2", &C::beta2,
       "second-moment decay of adam, adamw and muon, below 1; in float32, up to 0.999, 1 - beta2^t "
       "is "
       "rounded as optax rounds it",
       below_one, Rule<C>{is_adam, "is for adam, adamw and muon only"}},
      {"optimizer.epsilon", &C::epsilon, "denominator offset of adam, adamw, rmsprop and muon",
       positive, Rule<C>{[](const C& c) { return !is_sgd(c); }, "does not apply to sgd"}},
      {"optimizer.weight_decay", &C::weight_decay, "decoupled weight decay of adamw and muon",
       not_negative, Rule<C>{is_adamw, "applies to adamw and muon only"}},
      {"optimizer.weight_decay_on", &C::weight_decay_on,
       "parameters that decay; kernels: no biases, norms and embeddings",
       Rule<C>{[](const C& c) { return c.weight_decay != 0; }, "needs optimizer.weight_decay > 0"}},
      {"optimizer.decay", &C::decay, "running-average decay of rmsprop, below 1", below_one,
       Rule<C>{is_rmsprop, "applies to rmsprop only"}},
      {"optimizer.muon_momentum", &C::muon_momentum, "Nesterov momentum of muon, below 1",
       below_one, fixed, Rule<C>{is_muon, "is for muon only"}},
      {"optimizer.muon_scale", &C::muon_scale,
       "length of a step of muon: that of AdamW, 0.2 sqrt(max(rows, columns)), or the original one",
       Rule<C>{is_muon, "is for muon only"}},
      {"optimizer.moments_type", &C::moments_type,
       "type in which moments are kept: that of the parameters, or bf16 with stochastic rounding",
       fixed,
       Rule<C>{[](const C& c) { return moments_per_parameter(c) > 0; },
               "needs an optimizer with moments: sgd with momentum, adam, adamw, rmsprop or muon"}},
  };
  return fields;
}

const Fields<ScheduleConfig>& schedule_fields() {
  using C = ScheduleConfig;
  static const Fields<C> fields{
      {"schedule.kind", &C::kind, "learning-rate schedule", Tier::common,
       Rule<C>{missing_for_kind, When::always}},
      {"schedule.steps", &C::steps,
       "length of the schedule in steps, with the warm-up (exponential, step: steps per factor of "
       "schedule.rate); all but constant",
       Rule<C>{[](const C& c) { return !is_constant(c); }, "does not apply to constant"},
       Rule<C>{[](const C& c) { return c.steps > 0; }, "must be positive"}},
      {"schedule.rate", &C::rate, "decay factor per schedule.steps; exponential and step", positive,
       Rule<C>{has_powers, "applies to exponential and step only"}},
      {"schedule.end_factor", &C::end_factor,
       "final rate divided by base rate; cosine, linear, warmup_cosine, wsd", not_negative,
       Rule<C>{[](const C& c) { return has_end(c.kind); },
               "applies to cosine, linear, warmup_cosine and wsd only"}},
      {"schedule.decay_steps", &C::decay_steps,
       "last steps of the schedule, in which the rate falls linearly; wsd",
       Rule<C>{is_wsd, "is for wsd only"}, Rule<C>{allowed_decay, When::set}},
      {"schedule.warmup_steps", &C::warmup_steps,
       "first steps, in which the rate rises linearly to the base rate; 0: none", not_negative,
       Rule<C>{allowed_warmup, When::always}},
      {"schedule.start_factor", &C::start_factor,
       "initial rate divided by base rate, with a warm-up", not_negative,
       Rule<C>{[](const C& c) { return c.warmup_steps > 0; }, "needs schedule.warmup_steps > 0"}},
  };
  return fields;
}

const Fields<ClipConfig>& clip_fields() {
  using C = ClipConfig;
  static const Fields<C> fields{
      {"clip.global_norm", &C::global_norm, "clip the gradient to this global norm", positive},
      {"clip.value", &C::value, "clip gradient elements to this magnitude", positive},
  };
  return fields;
}

void validate(const OptimizerConfig& config) { check(optimizer_fields(), config); }
void validate(const ScheduleConfig& config) { check(schedule_fields(), config); }
void validate(const ClipConfig& config) { check(clip_fields(), config); }

}  // namespace tessera
