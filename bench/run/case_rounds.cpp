// SPDX-License-Identifier: Apache-2.0
#include "run/case_rounds.hpp"

#include <utility>

#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/process/provenance.hpp>

#include "run/group.hpp"

namespace tessera::bench {

CaseRounds::CaseRounds(const Case& point, LaunchState& launch, const References& references,
                       bool stays_set_up, std::vector<std::string> instead_of)
    : point_(point),
      launch_(launch),
      references_(references),
      study_(launch.study),
      stays_set_up_(stays_set_up),
      instead_of_(std::move(instead_of)),
      result_(new_result(study_, point)) {
  result_.launch = launch.name();
  result_.started = utc_time();
  const Plan plan = plan_of(point_.config, point_.ranks());
  is_done_ = !add_plan(result_, plan, study_.limits);
  if (is_done_) {
    launch.append(end_line());
    return;
  }
  const Machine* const machine = launch.machine(point_);
  if (machine == nullptr) return;
  const Plan on_machine = plan_of(point_.config, point_.ranks(), machine->traits());
  result_.prediction = prediction_of(simulate(on_machine, *machine), machine->name,
                                     launch.is_oversubscribed(point_));
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

void CaseRounds::run_round() {
  clock_ = Timer();
  if (is_done_) return;
  block_.reset();
  step_times_.clear();
  launch_.append(Begin{point_.id, round_, instead_of_});
  End aborted = end_line();
  aborted.result = result_;
  const Outcome outcome = launch_.abort_record.run(launch_.group(point_), aborted, [&] {
    const FoundReference reference = references_.find(point_.config);
    if (reference.failure.failed()) throw Error(reference.failure.code, reference.failure.message);
    run_steps(reference);
  });
  if (outcome.failed()) result_.end(outcome.code, outcome.message);
  // Other ranks of the job know neither the status nor the end; rank 0 has both.
  is_done_ |= !result_.is_measured() || round_ + 1 >= study_.measure.rounds;
  if (is_done_ || !stays_set_up_) run_.reset();
  seconds_before_ += clock_.seconds();
  launch_.append(end_line());
  is_done_ = broadcast_json(launch_.world, is_done_).get<bool>();
  instead_of_.clear();
  ++round_;
}

}  // namespace tessera::bench
