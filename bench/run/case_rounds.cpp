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
  result_.prediction = prediction_of(simulate(on_machine, cost_on(*machine, on_machine)),
                                     machine->name, context_.launch.is_oversubscribed(point_));
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

void CaseRounds::run_round() {
  clock_ = Timer();
  if (is_done_) return;
  block_.reset();
  step_times_.clear();
  append(Begin{point_.id, round_, instead_of_});
  End aborted = end_line();
  aborted.result = result_;
  const Group& group = context_.launch.group(point_);
  const Outcome outcome =
      context_.abort_record.run(group, point_.ranks(), point_.id, std::move(aborted), [&] {
        const FoundReference reference = context_.references.find(point_.config);
        if (reference.failure.failed())
          throw Error(reference.failure.code, reference.failure.message);
        run_steps(reference);
      });
  if (outcome.failed()) result_.end(outcome.code, outcome.message);
  // Other ranks of the job know neither the status nor the end; rank 0 has both.
  is_done_ |= !result_.is_measured() || round_ + 1 >= study_.measure.rounds;
  if (is_done_ || !stays_set_up_) run_.reset();
  seconds_before_ += clock_.seconds();
  append(end_line());
  is_done_ = broadcast_json(context_.world, is_done_).get<bool>();
  instead_of_.clear();
  ++round_;
}

}  // namespace tessera::bench
