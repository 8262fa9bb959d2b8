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
    const Size experts = layer.routing.experts;
    if (experts == 0) continue;
    const auto sum = [&](Size row) {
      return std::accumulate(next + row * experts, next + (row + 1) * experts, 0.0);
    };
    const double choices = sum(0), positions = choices / static_cast<double>(layer.routing.top_k);
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
  return std::exchange(sum, {});
}

template <class T>
Reporter<T>::Reporter(const Reporting& reporting, TrainingSession<T>& session, Size epochs,
                      Size epochs_left, const std::vector<double>& routing_so_far)
    : reporting_(reporting),
      session_(session),
      is_first_rank_(session.world().rank() == 0),
      first_step_(session.steps()),
      last_step_(session.steps() - session.batches_done() +
                 epochs_left * session.data().num_batches()),
      epochs_(epochs),
      last_record_(first_step_) {
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
    last_record_ -= since_record;
    // Other sums are of another record: this run writes them after other steps.
    if (records_routing() && !routing_so_far.empty() &&
        static_cast<Size>(routing_so_far.front()) == last_record_)
      recorded_.sum.routing.assign(routing_so_far.begin() + 1, routing_so_far.end());
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
  const double steps_until_next = make_report(for_person);
  if (for_person) {
    next_shown_ = steps_until_next < static_cast<double>(last_step_)
                      ? step + static_cast<Size>(steps_until_next)
                      : never;
    if (is_first_rank_ && activity_->seconds_until_due() <= 0) show(epoch, stepping_seconds);
  }
  if (for_files) {
    next_record_ = next_record();
    last_record_ = step;
    if (log_) record(epoch, stepping_seconds);
  }
}

template <class T>
double Reporter<T>::make_report(bool for_person) {
  const auto [report, steps_until_next] =
      session_.report(for_person && is_first_rank_ ? steps_until_shown() : 0);
  shown_.add(report);
  recorded_.add(report);
  return steps_until_next;
}

template <class T>
std::vector<double> Reporter<T>::routing_so_far() {
  if (!records_routing()) return {};
  make_report(false);
  std::vector<double> sums{static_cast<double>(last_record_)};
  const std::vector<double>& routing = recorded_.sum.routing;
  sums.insert(sums.end(), routing.begin(), routing.end());
  return sums;
}

template <class T>
void Reporter<T>::show(Size epoch, double stepping_seconds) {
  const double steps = static_cast<double>(session_.steps() - first_step_);
  const double rate = shown_.samples_per_second(stepping_seconds);
  const Plan& plan = session_.plan();
  const double batches_per_second = rate / static_cast<double>(plan.input.batch_size);
  const StepReport report = shown_.take(stepping_seconds);
  activity_->update(reporting_.line(
      {.report = report,
       .loss_parts = mean_parts(plan.input, report),
       .epoch = epoch,
       .epochs = epochs_,
       .steps = last_step_,
       .samples_per_second = rate,
       .flops_per_second = batches_per_second * plan.flops.total() /
                           static_cast<double>(plan.input.mesh.num_ranks()),
       .device_bytes = session_.measured_bytes(),
       .seconds_left =
           clock_.seconds() * static_cast<double>(last_step_ - session_.steps()) / steps}));
}

template <class T>
void Reporter<T>::record(Size epoch, double stepping_seconds) {
  const double rate = recorded_.samples_per_second(stepping_seconds);
  const StepReport report = recorded_.take(stepping_seconds);
  std::vector<NamedNumber> numbers{{"loss", report.loss()},
                                   {"gradient_norm", report.gradient_norm},
                                   {"learning_rate", report.learning_rate},
                                   {"samples_per_second", rate}};
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
