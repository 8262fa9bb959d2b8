// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/train/checkpointing.hpp>

namespace tessera {

SaveSchedule::SaveSchedule(const Checkpointing& checkpointing, const Communicator& ranks)
    : config_(checkpointing.config), wants_to_stop_(checkpointing.wants_to_stop), ranks_(ranks) {}

NextMove SaveSchedule::own_wish() const {
  if (wants_to_stop_ && wants_to_stop_()) return NextMove::stop;
  constexpr double minute = 60;
  const bool is_time =
      config_.every_minutes > 0 && since_save_.seconds() >= config_.every_minutes * minute;
  return is_time ? NextMove::save : NextMove::go_on;
}

NextMove SaveSchedule::after_step(Size steps, Size written_saves) {
  agreement_.wait();
  written_everywhere_ = -wish_(1);
  NextMove move = static_cast<NextMove>(wish_(0));
  if (config_.every_steps > 0 && steps % config_.every_steps == 0)
    move = std::max(move, NextMove::save);
  if (move == NextMove::save) saved();
  wish_(0) = static_cast<Size>(own_wish());
  wish_(1) = -written_saves;
  agreement_ = ranks_.iall_reduce(wish_, ReduceOp::max);
  return move;
}

}  // namespace tessera
