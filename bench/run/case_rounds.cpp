// SPDX-License-Identifier: Apache-2.0
#include "run/case_rounds.hpp"

#include <utility>

#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/process/provenance.hpp>

#include "run/group.hpp"

namespace tessera::bench {

CaseRounds::CaseRounds(const Case& point, const RoundsContext& context, bool stays_set_up,
                       std::vector<std::string> instead_of)
    : point_(point),
      context_(context),
      study_(context.study),
      stays_set_up_(stays_set_up),
      instead_of_(std::move(instead_of)),
      result_(new_result(study_, point)) {
  result_.launch = context_.launch.name();
  result_.started = utc_time();
  const Plan plan = plan_of(point_.config, point_.ranks());
  is_done_ = !add_plan(result_, plan, study_.limits);
  if (is_done_) {
    append(end_line());
    return;
  }
  const Machine* const machine =
      context_.world.rank() == 0 ? context_.launch.machine(point_) : nullptr;
  if (machine == nullptr) return;
  const Plan on_machine = plan_of(point_.config, point_.ranks(), machine->target());
  predicted_ = simulate(on_machine, cost_on(*machine, on_machine));
  result_.prediction =
      prediction_of(*predicted_, machine->name, context_.launch.is_oversubscribed(point_));
}

template <class Line>
void CaseRounds::append(const Line& line) const {
  collectively(context_.world, [&] {
    if (context_.journal != nullptr) context_.journal->append(line);
  });
}

End CaseRounds::end_line() const {
  End end{point_.id, round_};
  end.time = utc_time();
  end.seconds = seconds_before_;
  end.last = is_done_;
  end.block = block_;
  end.steps = step_times_;
  if (round_ == 0 || !result_.is_measured()) end.result = result_;
  return end;
}

/// Ranks that are not of the case sleep.
void CaseRounds::run_round() {
  clock_ = Timer();
  if (is_done_) return;
  block_.reset();
  step_times_.clear();
  const bool is_first = context_.world.rank() == 0;
  append(Begin{point_.id, round_, instead_of_});
  std::optional<double> deadline;
  FoundReference reference;
  if (is_first) {
    deadline = study_.limits.case_seconds;
    reference = context_.references.find(point_.config);
  }
  End aborted = end_line();
  aborted.result = result_;
  context_.abort_record.begin(point_.id, std::move(aborted), deadline);
  sleep_until_all_arrive(study_.limits);
  if (context_.world.rank() < point_.ranks()) measure(reference);
  sleep_until_all_arrive(study_.limits);
  context_.abort_record.end();
  seconds_before_ += clock_.seconds();
  append(end_line());
  is_done_ = broadcast_json(context_.world, is_done_).get<bool>();
  instead_of_.clear();
  ++round_;
}

void CaseRounds::measure(const FoundReference& reference) {
  const Group& group = context_.launch.group(point_);
  const Outcome outcome = run_on_group(group, study_.limits, [&] {
    const FoundReference shared = broadcast_json(group.ranks, reference);
    if (shared.failure.failed()) throw Error(shared.failure.code, shared.failure.message);
    run_steps(shared);
  });
  if (outcome.failed()) result_.end(outcome.code, outcome.message);
  is_done_ |= !result_.is_measured() || round_ + 1 >= study_.measure.rounds;
  if (is_done_ || !stays_set_up_) run_.reset();
}

}  // namespace tessera::bench
