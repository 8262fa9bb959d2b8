// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include <tessera/comm/agree.hpp>
#include <tessera/config/config_agreement.hpp>
#include <tessera/train/reporter.hpp>

namespace tessera {
namespace {

/// Returns the metrics of each router from BatchFacts::routing of all: the fraction of its choices
/// that are dropped, the mean entropy of its probabilities, and its choices by expert.
std::vector<std::pair<std::string, double>> routing_metrics(const ModelSpec& model,
                                                            const std::vector<double>& routing) {
  std::vector<std::pair<std::string, double>> metrics;
  const double* next = routing.data();
  for (const LayerSpec& layer : model.layers) {
    const auto* const routing_of = std::get_if<Routing>(&layer.settings);
    if (routing_of == nullptr) continue;
    const Size experts = routing_of->experts;
    const auto sum = [&](Size row) {
      return std::accumulate(next + row * experts, next + (row + 1) * experts, 0.0);
    };
    const double choices = sum(0), positions = choices / static_cast<double>(routing_of->top_k);
    metrics.emplace_back(layer.unit + "/dropped", sum(1) / choices);
    metrics.emplace_back(layer.unit + "/entropy", sum(2) / positions);
    for (Size e = 0; e < experts; ++e)
      metrics.emplace_back(fmt::format("{}/load/{}", layer.unit, e), next[e] / choices);
    next += 3 * experts;
  }
  return metrics;
}

/// Returns the parts of the loss of a report (named_parts()).
std::vector<NamedNumber> mean_parts(const PlanInput& input, const StepReport& report) {
  LossParts mean;
  mean.add(report.loss_sum, 1 / static_cast<double>(report.loss_count));
  return named_parts(input, mean);
}

/// Returns the step of the first progress: after about 2 s on a slow core, but not after more than
/// 1000 steps. All ranks know it without a message; at that step rank 0 knows how long steps take.
Size first_shown(const Plan& plan) {
  constexpr double slow_rate = 1e10;  // FLOP/s
  const double flops = plan.flops.total() / static_cast<double>(plan.input.mesh.num_ranks());
  return static_cast<Size>(std::clamp(2 * slow_rate / std::max(flops, 1.0), 1.0, 1000.0));
}

}  // namespace

template <class T>
void Reporter<T>::Window::add(const StepReport& report) {
  StepReport added = report;
  added.loss_sum.add(sum.loss_sum);
  added.loss_count += sum.loss_count;
  added.samples += sum.samples;
  for (std::size_t i = 0; i < sum.routing.size(); ++i) added.routing[i] += sum.routing[i];
  sum = added;
}

template <class T>
StepReport Reporter<T>::Window::take(double seconds) {
  begin = seconds;
  steps_before = sum.step;
  return std::exchange(sum, {});
}

template <class T>
Speed Reporter<T>::speed(const Window& window, double stepping_seconds) const {
  const PlanInput& input = session_.plan().input;
  const double seconds = stepping_seconds - window.begin;
  const auto samples = static_cast<double>(window.sum.samples);
  Speed speed;
  speed.seconds_per_step = seconds / static_cast<double>(window.sum.step - window.steps_before);
  speed.samples_per_second = samples / seconds;
  if (input.model.classes > 0)
    speed.tokens_per_second =
        speed.samples_per_second * static_cast<double>(input.model.input_positions);
  const double batches = samples / static_cast<double>(input.batch_size);
  speed.flops_per_second = batches * session_.plan().flops.total() / seconds /
                           static_cast<double>(input.mesh.num_ranks());
  if (reporting_.peak) speed.mfu = speed.flops_per_second / *reporting_.peak;
  return speed;
}

template <class T>
Reporter<T>::Reporter(const Reporting& reporting, TrainingSession<T>& session, Size epochs,
                      Size epochs_left)
    : reporting_(reporting),
      session_(session),
      is_first_rank_(session.world().is_first()),
      first_step_(session.steps()),
      last_step_(session.steps() - session.batches_done() +
                 epochs_left * session.data().num_batches()),
      epochs_(epochs) {
  shown_.steps_before = recorded_.steps_before = first_step_;
  check_same_everywhere(session.world(), "reporting.line", reporting.line ? 1 : 0);
  if (reporting.line) activity_.emplace("training: first steps");
  if (reporting.output.enabled() || !reporting.output.hashes.empty())
    collectively(session.world(), [&] {
      if (is_first_rank_) log_.emplace(reporting.output, first_step_);
    });
  if (reporting.output.enabled()) {
    next_record_ = next_record();
    // A resumed training knows the losses of the epoch from its checkpoint, also for the first
    // record.
    const Size every = reporting.output.every_steps;
    const Size since_record = every > 0 ? first_step_ % every : session.batches_done();
    session.report_from(std::max(session.batches_done() - since_record, Size{0}));
  }
  if (reporting.line) next_shown_ = first_step_ + first_shown(session.plan());
}

template <class T>
Size Reporter<T>::next_record() const {
  const Size every = reporting_.output.every_steps, step = session_.steps();
  if (every > 0) return (step / every + 1) * every;
  const Size batches = session_.data().num_batches();
  return step + batches - session_.batches_done() % batches;
}

/// Returns the number of steps until rank 0 wants to show progress again.
template <class T>
double Reporter<T>::steps_until_shown() const {
  constexpr double shortest = 0.1;  // seconds
  const double rate =
      static_cast<double>(session_.steps() - first_step_) / std::max(clock_.seconds(), 1e-9);
  return std::max(1.0, std::floor(rate * std::max(shortest, activity_->seconds_until_due())));
}

template <class T>
void Reporter<T>::report(Size epoch, double stepping_seconds) {
  const Size step = session_.steps();
  const bool for_person = step >= next_shown_, for_files = step >= next_record_;
  if (hash_is_due()) {
    const auto [names, hashes] = session_.hashes();
    if (log_) log_->write_hashes(step, names, hashes);
  }
  if (!for_person && !for_files) return;
  const auto [made, steps_until_next] =
      session_.report(for_person && is_first_rank_ ? steps_until_shown() : 0);
  shown_.add(made);
  recorded_.add(made);
  if (for_person) {
    next_shown_ = steps_until_next < static_cast<double>(last_step_)
                      ? step + static_cast<Size>(steps_until_next)
                      : never;
    if (is_first_rank_ && activity_->seconds_until_due() <= 0) show(epoch, stepping_seconds);
  }
  if (for_files) {
    next_record_ = next_record();
    if (log_) record(epoch, stepping_seconds);
  }
}

template <class T>
void Reporter<T>::show(Size epoch, double stepping_seconds) {
  const double steps = static_cast<double>(session_.steps() - first_step_);
  const Speed now = speed(shown_, stepping_seconds);
  const StepReport report = shown_.take(stepping_seconds);
  activity_->update(reporting_.line(
      {.report = report,
       .loss_parts = mean_parts(session_.plan().input, report),
       .epoch = epoch,
       .epochs = epochs_,
       .steps = last_step_,
       .speed = now,
       .device_bytes = session_.measured_bytes(),
       .seconds_left =
           clock_.seconds() * static_cast<double>(last_step_ - session_.steps()) / steps}));
}

template <class T>
void Reporter<T>::record(Size epoch, double stepping_seconds) {
  const Speed now = speed(recorded_, stepping_seconds);
  const StepReport report = recorded_.take(stepping_seconds);
  std::vector<NamedNumber> numbers{
      {session_.world().is_fake() ? "meaningless_loss" : "loss", report.loss()},
      {"gradient_norm", report.gradient_norm},
      {"learning_rate", report.learning_rate},
      {"seconds_per_step", now.seconds_per_step},
      {"samples_per_second", now.samples_per_second}};
  if (now.tokens_per_second) numbers.emplace_back("tokens_per_second", *now.tokens_per_second);
  numbers.emplace_back("flops_per_second", now.flops_per_second);
  if (now.mfu) numbers.emplace_back("mfu", *now.mfu);
  for (const NamedNumber& part : mean_parts(session_.plan().input, report)) numbers.push_back(part);
  const auto routing = routing_metrics(session_.plan().input.model, report.routing);
  numbers.insert(numbers.end(), routing.begin(), routing.end());
  log_->write(report.step, epoch, numbers);
}

template <class T>
void Reporter<T>::validated(Size epoch, const Validation& result) {
  if (!log_) return;
  std::vector<NamedNumber> numbers{{"validation_loss", result.loss}};
  std::vector<std::string> names;
  for (const auto& [name, value] : result.parts)
    names.push_back(fmt::format("validation_{}", name));
  for (std::size_t i = 0; i < names.size(); ++i)
    numbers.emplace_back(names[i], result.parts[i].second);
  if (result.solution_error) numbers.emplace_back("solution_error", *result.solution_error);
  log_->write(session_.steps(), epoch, numbers);
}

TESSERA_INSTANTIATE_CLASS(Reporter);

}  // namespace tessera
