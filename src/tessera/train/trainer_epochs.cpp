// SPDX-License-Identifier: Apache-2.0
// The loop of epochs. What happens between its steps is in hooks.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/train/trainer.hpp>

namespace tessera {
namespace {

void do_nothing() {}

/// A part of the work between the steps of a training. Every rank calls the same hooks in the same
/// order, so all functions may be collective.
struct TrainingHook {
  std::function<void()> after_step = do_nothing;
  std::function<void()> after_epoch = do_nothing;  ///< after an epoch whose loss is finite
  std::function<void()> at_end = do_nothing;       ///< unless an error ends the training
};

/// Throws Error (wrong_result) on all ranks if a loss is not finite on one of them: ranks along
/// `model` compute it separately, but must stop together. Losses of a fake rank mean nothing.
void check_finite(const Communicator& world, double loss, const char* what, Size epoch) {
  collectively(world, [&] {
    if (!std::isfinite(loss) && !world.is_fake())
      throw Error(ExitCode::wrong_result, "training diverged: the {} of epoch {} is {}", what,
                  epoch, std::isnan(loss) ? "not a number" : "infinite");
  });
}

}  // namespace

std::optional<EpochValidation> TrainingMetrics::best_validation() const {
  std::optional<EpochValidation> best;
  for (const EpochValidation& one : validations)
    if (std::isfinite(one.result.loss) && (!best || one.result.loss < best->result.loss))
      best = one;
  return best;
}

template <class T>
struct Trainer<T>::Epochs {
  Trainer& trainer;
  TrainingSession<T>& session;
  TrainingMetrics& metrics;
  Reporter<T>& reporter;
  const EpochObserver& observe;
  Size epoch;                       ///< the present one, counted from 1
  Timer stepping{};                 ///< time in steps that the metrics do not have yet
  NextMove move = NextMove::go_on;  ///< decided after the latest step
  bool is_best = false;             ///< the state after the epoch is among the best ones

  void run() {
    call();
    metrics.stopped_early = ends_early();
    const std::vector<TrainingHook> hooks = hooks_in_order();
    while (!is_over()) {
      ++epoch;
      stepping.restart();
      const std::vector<double> losses = session.run_epoch([&] {
        ++metrics.steps;
        for (const TrainingHook& hook : hooks) hook.after_step();
        if (ends_epoch()) pause(do_nothing);
        return move != NextMove::stop;
      });
      if (losses.empty()) break;
      metrics.epoch_losses.push_back(std::accumulate(losses.begin(), losses.end(), 0.0) /
                                     static_cast<double>(losses.size()));
      metrics.final_parts = named_parts(session.plan().input, session.epoch_parts());
      check_finite(trainer.world_, metrics.final_loss(), "loss", epoch);
      for (const TrainingHook& hook : hooks) hook.after_epoch();
    }
    for (const TrainingHook& hook : hooks) hook.at_end();
    metrics.stopped = !metrics.stopped_early &&
                      std::ssize(metrics.epoch_losses) < trainer.config_.training.num_epochs;
  }

  /// A step is reported before it is saved, and an epoch validated before.
  std::vector<TrainingHook> hooks_in_order() {
    std::vector<TrainingHook> hooks{{.after_step = [this] { report(); }},
                                    {.after_step = [this] { call(); }},
                                    {.after_epoch = [this] { validate(); }},
                                    {.after_epoch = [this] {
                                      if (observe) observe(epoch, metrics.final_loss());
                                    }}};
    if (trainer.saves_)
      hooks.push_back({.after_step = [this] { save_after_step(); },
                       .after_epoch = [this] { save_after_epoch(); },
                       .at_end =
                           [this] {
                             trainer.saves_->schedule.finish();
                             finish_save();
                           }});
    return hooks;
  }

  bool ends_epoch() const { return session.batches_done() == session.data().num_batches(); }
  bool is_over() const {
    return epoch >= trainer.config_.training.num_epochs || metrics.stopped_early ||
           move == NextMove::stop;
  }

  /// Does work that is no part of a step outside of the time of steps.
  void pause(const std::function<void()>& work) {
    Kokkos::fence();
    metrics.stepping_seconds += stepping.seconds();
    work();
    stepping.restart();
  }

  void report() {
    if (reporter.is_due()) reporter.report(epoch, metrics.stepping_seconds + stepping.seconds());
  }

  /// Makes the call of after_steps() that is due.
  void call() {
    const auto found = trainer.after_steps_.find(metrics.steps);
    if (found != trainer.after_steps_.end()) pause(found->second);
  }

  /// A loss that is not finite is no new smallest one if there is patience; else it is an error.
  void validate() {
    is_best = false;
    if (!session.validates_after(epoch)) return;
    std::vector<EpochValidation>& all = metrics.validations;
    all.push_back({epoch, session.validate()});
    reporter.validated(epoch, all.back().result);
    const double loss = all.back().result.loss;
    const bool has_patience = trainer.config_.training.patience > 0;
    if (!has_patience) check_finite(trainer.world_, loss, "validation loss", epoch);
    const Size kept = trainer.saves_ ? trainer.checkpointing_.config.keep_best : 0;
    if (!has_patience && kept == 0) return;
    const Size as_good = std::count_if(all.begin(), all.end() - 1, [&](const auto& earlier) {
      return earlier.result.loss <= loss;
    });
    // Rank 0 decides for all, because ranks along `model` compute losses separately.
    const nlohmann::json verdict =
        broadcast_json(trainer.world_, {ends_early(), std::isfinite(loss) && as_good < kept});
    metrics.stopped_early = verdict.at(0);
    is_best = verdict.at(1);
  }

  /// Returns true if training ends before its last epoch for want of a smaller validation loss.
  bool ends_early() const {
    const TrainingConfig& training = trainer.config_.training;
    const auto best = metrics.best_validation();
    const Size since_best =
        std::count_if(metrics.validations.begin(), metrics.validations.end(),
                      [&](const auto& one) { return one.epoch > (best ? best->epoch : 0); });
    return training.patience > 0 && since_best >= training.patience &&
           std::ssize(metrics.epoch_losses) < training.num_epochs;
  }

  /// A checkpoint after the last step of an epoch has the epoch's loss: see save_after_epoch().
  void save_after_step() {
    auto& [ranks, store, schedule] = *trainer.saves_;
    move = schedule.after_step(session.steps(), store.written_saves());
    if (store.is_ready(schedule.written_everywhere())) pause([this] { finish_save(); });
    if (move != NextMove::go_on && !ends_epoch())
      pause([this] { trainer.save(metrics, move == NextMove::stop); });
  }

  void save_after_epoch() {
    const bool ends = move == NextMove::stop || (is_over() && trainer.checkpointing_.config.at_end);
    if (ends || is_best || move == NextMove::save) trainer.save(metrics, ends);
  }

  void finish_save() {
    trainer.attempt(metrics, false, [&] { trainer.saves_->store.finish(); });
  }
};

template <class T>
void Trainer<T>::run_epochs(const EpochObserver& observe, TrainingMetrics& metrics,
                            Reporter<T>& reporter) {
  Epochs{*this, *session_, metrics, reporter, observe, std::ssize(metrics.epoch_losses)}.run();
}

TESSERA_INSTANTIATE_CLASS(Trainer);

}  // namespace tessera
