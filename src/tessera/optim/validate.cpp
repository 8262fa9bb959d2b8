// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/optim/optimizer_config.hpp>
#include <tessera/optim/schedule.hpp>

namespace tessera {
namespace {

// NaN fails every comparison.

template <class T>
void require(bool good, const std::string& key, const T& value, const std::string& allowed) {
  if (!good) throw ConfigError(key, fmt::format("{}", value), allowed);
}

void require_fraction(const std::string& key, double value) {
  require(value >= 0 && value < 1, key, value, "must be in [0, 1)");
}

/// Rejects a value that is not used and not the default.
template <class T>
void require_unused(bool used, const std::string& key, const T& value, const T& unset,
                    const char* users) {
  require(used || value == unset, key, value, users);
}

}  // namespace

void validate(const OptimizerConfig& c) {
  const OptimizerConfig unset;
  const bool sgd = c.kind == OptimizerKind::sgd, rmsprop = c.kind == OptimizerKind::rmsprop;
  const bool adam = c.kind == OptimizerKind::adam || c.kind == OptimizerKind::adamw;
  require_unused(sgd, "optimizer.momentum", c.momentum, unset.momentum, "is for sgd only");
  require_unused(sgd, "optimizer.nesterov", c.nesterov, unset.nesterov, "is for sgd only");
  require_unused(adam, "optimizer.beta1", c.beta1, unset.beta1, "is for adam and adamw only");
  require_unused(adam, "optimizer.beta2", c.beta2, unset.beta2, "is for adam and adamw only");
  require_unused(!sgd, "optimizer.epsilon", c.epsilon, unset.epsilon, "does not apply to sgd");
  require_unused(rmsprop, "optimizer.decay", c.decay, unset.decay, "applies to rmsprop only");
  require_unused(c.kind == OptimizerKind::adamw, "optimizer.weight_decay", c.weight_decay,
                 unset.weight_decay, "applies to adamw only");
  require_unused(c.weight_decay != 0, "optimizer.weight_decay_on", name_of(c.weight_decay_on),
                 name_of(unset.weight_decay_on), "needs optimizer.weight_decay > 0");

  require_fraction("optimizer.momentum", c.momentum);
  require_fraction("optimizer.beta1", c.beta1);
  require_fraction("optimizer.beta2", c.beta2);
  require_fraction("optimizer.decay", c.decay);
  require(c.epsilon > 0 && std::isfinite(c.epsilon), "optimizer.epsilon", c.epsilon,
          "must be positive");
  require(c.weight_decay >= 0 && std::isfinite(c.weight_decay), "optimizer.weight_decay",
          c.weight_decay, "must not be negative");
  require(!c.nesterov || c.momentum > 0, "optimizer.nesterov", c.nesterov,
          "needs optimizer.momentum > 0");
}

void validate(const ScheduleConfig& c) {
  const ScheduleConfig unset;
  const bool constant = c.kind == ScheduleKind::constant;
  const bool wsd = c.kind == ScheduleKind::wsd, warmup = c.warmup_steps > 0;
  const bool powers = c.kind == ScheduleKind::exponential || c.kind == ScheduleKind::step;
  require_unused(!constant, "schedule.steps", c.steps, unset.steps, "does not apply to constant");
  require_unused(powers, "schedule.rate", c.rate, unset.rate,
                 "applies to exponential and step only");
  require_unused(has_end(c.kind), "schedule.end_factor", c.end_factor, unset.end_factor,
                 "applies to cosine, linear, warmup_cosine and wsd only");
  require_unused(wsd, "schedule.decay_steps", c.decay_steps, unset.decay_steps, "is for wsd only");
  require_unused(warmup, "schedule.start_factor", c.start_factor, unset.start_factor,
                 "needs schedule.warmup_steps > 0");

  // A kind is given alone when its other keys are forgotten.
  const auto require_of_kind = [&](bool good, const char* needed) {
    require(good, "schedule.kind", fmt::format("\"{}\"", name_of(c.kind)), needed);
  };
  require_of_kind(constant || c.steps != unset.steps, "needs schedule.steps, its length in steps");
  require(constant || c.steps > 0, "schedule.steps", c.steps, "must be positive");
  require(c.rate > 0 && std::isfinite(c.rate), "schedule.rate", c.rate, "must be positive");
  require(c.end_factor >= 0 && std::isfinite(c.end_factor), "schedule.end_factor", c.end_factor,
          "must not be negative");
  require(c.start_factor >= 0 && std::isfinite(c.start_factor), "schedule.start_factor",
          c.start_factor, "must not be negative");
  require(c.warmup_steps >= 0, "schedule.warmup_steps", c.warmup_steps, "must not be negative");
  require_of_kind(warmup || c.kind != ScheduleKind::warmup_cosine,
                  "needs schedule.warmup_steps > 0");
  if (!has_end(c.kind)) return;
  // steps includes the warm-up
  require(c.warmup_steps < c.steps, "schedule.warmup_steps", c.warmup_steps,
          fmt::format("must be below schedule.steps = {}", c.steps));
  require_of_kind(!wsd || c.decay_steps != unset.decay_steps, "needs schedule.decay_steps");
  const Size rest = c.steps - c.warmup_steps;
  require(!wsd || (c.decay_steps > 0 && c.decay_steps <= rest), "schedule.decay_steps",
          c.decay_steps,
          fmt::format("must be from 1 to {}, schedule.steps less schedule.warmup_steps", rest));
}

void validate(const ClipConfig& c) {
  const auto check = [](const char* key, const std::optional<double>& limit) {
    if (limit) require(*limit > 0 && std::isfinite(*limit), key, *limit, "must be positive");
  };
  check("clip.global_norm", c.global_norm);
  check("clip.value", c.value);
}

}  // namespace tessera
