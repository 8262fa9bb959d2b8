// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/checkpoint_store.hpp>
#include <tessera/checkpoint/checksums.hpp>
#include <tessera/checkpoint/trainings.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/nodes.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/process/log.hpp>

namespace tessera {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

void make_usable(const std::string& directory) {
  make_directory("checkpoint.directory", directory);
  if (access(directory.c_str(), R_OK | W_OK | X_OK) != 0)
    throw ConfigError("checkpoint.directory", directory, "must be writable: {}",
                      std::strerror(errno));
}

/// Returns true if the training may go on in the folder of `resumed`: it has no later checkpoint.
bool goes_on_there(const CheckpointConfig& config, const std::optional<ResumedFrom>& resumed) {
  std::error_code error;
  if (!resumed || !fs::equivalent(resumed->training / "..", config.directory, error) || error)
    return false;
  for (const Size step : steps_in(resumed->training)) {
    if (step <= resumed->step) break;
    if (is_complete(resumed->training / checkpoint_name(step))) return false;
  }
  return true;
}

/// Returns true if the file exists. `is_remote`: another host has made it. NFS may then show old
/// names for 30 s.
bool becomes_visible(const fs::path& file, bool is_remote) {
  const Timer waiting;
  constexpr double longest = 30;  // s
  std::error_code unused;
  while (!fs::exists(file, unused)) {
    if (!is_remote || waiting.seconds() > longest) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return true;
}

}  // namespace

CheckpointStore::CheckpointStore(const CheckpointConfig& config, const Communicator& ranks,
                                 SaveObserver observer, const TrainingStart& start)
    : config_(config), ranks_(ranks), observer_(std::move(observer)), hosts_(node_of_ranks(ranks)) {
  collectively(ranks_, [&] {
    if (ranks_.rank() == 0) open_training(start);
  });
  const nlohmann::json agreed = broadcast_json(
      ranks_,
      {training_.filename().string(), run_, start.turns == 0 && is_on_nfs(config_.directory)});
  training_ = fs::path(config_.directory) / agreed.at(0).get<std::string>();
  run_ = agreed.at(1);
  std::set<Size> hosts(hosts_.begin(), hosts_.end());
  if (start.turns > 1 || agreed.at(2) == true) {
    turns_ = start.turns > 1 ? start.turns : std::ssize(hosts);
    turn_ = start.turns > 1 ? ranks_.rank() % start.turns
                            : std::distance(hosts.begin(), hosts.find(hosts_[ranks_.rank()]));
  }
  if (turns_ > 1 && config_.async)
    log_warning(fmt::format(
        "checkpoint.async = true: hosts write to {} one after another, because it is on NFS, so "
        "training waits for checkpoints",
        config_.directory));
  try_saving();
}

CheckpointStore::~CheckpointStore() {
  const bool is_writing = writing_.valid();  // an error has ended the training
  writing_ = {};
  if (!folder_) return;
  std::error_code unused;
  if (is_writing) fs::remove(temporary(), unused);
  fs::remove(training_, unused);
}

/// Finds or makes the folder of this training, and locks it.
void CheckpointStore::open_training(const TrainingStart& start) {
  make_usable(config_.directory);
  remove_unfinished(config_.directory);
  run_ = fmt::format("{:08x}", std::random_device()());
  if (start.resumed) first_ = start.resumed->step;
  if (goes_on_there(config_, start.resumed)) {
    training_ = fs::path(config_.directory) / fs::canonical(start.resumed->training).filename();
  } else {
    training_ = make_training(config_.directory, start.fingerprint);
    if (start.resumed) history_ = *start.resumed;
  }
  folder_ = std::make_shared<OpenFile>(training_, O_RDONLY | O_DIRECTORY);
  if (folder_->lock() == Lock::held)
    throw ConfigError("checkpoint.directory", config_.directory,
                      "another run goes on with the training in {}: wait for its end, or set "
                      "another directory",
                      training_.filename().string());
}

/// Rank 0 writes a small file, and every rank reads it.
void CheckpointStore::try_saving() {
  const fs::path file = training_ / ("trial." + run_ + std::string(unfinished));
  const Outcome outcome = outcome_of([&] {
    collectively(ranks_, [&] {
      if (ranks_.rank() == 0) write_durably(file, run_);
    });
    check_shared(file);
    collectively(ranks_, [&] {
      if (read_text(file) != run_)
        throw Error(ExitCode::usage, "{}: has other contents than rank 0 wrote", file.string());
    });
  });
  std::error_code unused;
  if (ranks_.rank() == 0) fs::remove(file, unused);
  if (!outcome.failed()) return;
  check_alone();
  if (folder_) fs::remove(training_, unused);
  if (outcome.code != ExitCode::usage || outcome.message.starts_with("checkpoint.directory"))
    throw Error(outcome.code, outcome.message);
  throw ConfigError("checkpoint.directory", config_.directory, "cannot hold checkpoints: {}",
                    outcome.message);
}

/// Throws the same ConfigError on all ranks if one of them does not see a file of rank 0.
void CheckpointStore::check_shared(const fs::path& file) const {
  const bool sees = becomes_visible(file, hosts_[ranks_.rank()] != hosts_[0]);
  const std::string apart = conclude_json(ranks_, sees, [](const auto& all) {
    std::vector<int> without;
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      if (all[rank] == false) without.push_back(static_cast<int>(rank));
    return nlohmann::json(without.empty() ? "" : rank_list(without));
  });
  if (!apart.empty())
    throw ConfigError("checkpoint.directory", config_.directory,
                      "must be a directory that all ranks share; a file of rank 0 is not there on "
                      "{}",
                      apart);
}

void CheckpointStore::reach(SavePoint point) const {
  if (observer_) observer_(point);
}

/// Runs an action on rank 0 for all ranks.
void CheckpointStore::on_first_rank(const std::function<void()>& action, SavePoint point) {
  collectively(ranks_, [&] {
    if (ranks_.rank() == 0) action();
  });
  reach(point);
}

fs::path CheckpointStore::temporary() const {
  return path_.string() + "." + run_ + std::string(unfinished);
}

template <class T>
void CheckpointStore::save(const Engine<T>& engine, const TrainingState& state) {
  finish();
  const Timer timer;
  path_ = training_ / checkpoint_name(state.step);
  reach(SavePoint::begun);
  write_or_remove([&] {
    create(state, checkpoint_tensors(engine.plan()));
    reach(SavePoint::created);
    bytes_ = checkpoint_bytes(engine.plan(), ranks_.rank()).written;
    if (config_.async && turns_ == 1) return start_writing(engine);
    Sums sums;
    by_turns([&] { sums = write_tensors(file_, engine, ranks_.rank()); });
    publish(sums);
  });
  costs_.seconds += timer.seconds();
}

/// Rank 0 makes the file under its temporary name and reserves its space: without it, ranks could
/// write half of it to a full disk.
void CheckpointStore::create(const TrainingState& state,
                             const std::vector<CheckpointTensor>& tensors) {
  state_ = state;
  state_.training = training_.filename();
  Size header_bytes = 0;
  collectively(ranks_, [&] {
    check_finite("the loss of an epoch", state.epoch_losses.data(), state.epoch());
    check_finite("the loss of a batch", state.losses_so_far.data(), state.batch());
    check_finite("the loss of a layer", state.layer_losses_so_far.data(),
                 std::ssize(state.layer_losses_so_far));
    if (ranks_.rank() != 0) return;
    check_own_steps();
    check_replaceable(path_);
    header_bytes = std::ssize(checkpoint_header(tensors, state_, Sums(tensors.size())));
    const OpenFile made(temporary(), O_WRONLY | O_CREAT | O_EXCL);
    made.reserve_space({0, places_of(tensors, header_bytes).back()});
  });
  check_shared(temporary());
  header_bytes = broadcast_json(ranks_, header_bytes);
  file_ = {temporary().string(), tensors, places_of(tensors, header_bytes),
           [this] { reach(SavePoint::tensor_written); }};
}

/// Runs `write` on the ranks of one host after another. A host that opens a file after another one
/// has closed it sees all that the other has written (close-to-open consistency of NFS, RFC 7530,
/// 1.4.6). Collective.
void CheckpointStore::by_turns(const std::function<void()>& write) const {
  Outcome mine;
  for (Size turn = 0; turn < turns_; ++turn) {
    if (turn == turn_) mine = outcome_of(write);
    if (turns_ > 1) ranks_.barrier();
  }
  raise_first_failure(ranks_, mine, Site::current());
}

template <class T>
void CheckpointStore::start_writing(const Engine<T>& engine) {
  collectively(ranks_, [&] {
    snapshot_->take(engine, ranks_.rank());
    // Does not capture `this`, because a store may be moved.
    TensorFile to = file_;
    to.after_tensor = [observer = observer_] {
      if (observer) observer(SavePoint::tensor_written);
    };
    const auto write = [to, snapshot = snapshot_] {
      Written written{.began = Clock::now()};
      written.outcome = outcome_of([&] { written.sums = snapshot->write(to); });
      written.ended = Clock::now();
      return written;
    };
    writing_ = std::async(std::launch::async, write);
  });
  ++begun_;
}

Size CheckpointStore::written_saves() const {
  const bool writes =
      writing_.valid() && writing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  return begun_ - (writes ? 1 : 0);
}

void CheckpointStore::finish() {
  if (!writing_.valid()) return;
  const Timer timer;
  const Clock::time_point waits_from = Clock::now();
  const Written written = writing_.get();
  const std::chrono::duration<double> hidden = std::min(written.ended, waits_from) - written.began;
  costs_.hidden_seconds += std::max(hidden.count(), 0.0);
  write_or_remove([&] {
    raise_first_failure(ranks_, written.outcome, Site::current());
    costs_.waited_seconds += timer.seconds();
    publish(written.sums);
  });
  costs_.seconds += timer.seconds();
}

/// Completes a file to which all ranks have written their elements.
void CheckpointStore::publish(const Sums& sums) {
  const Kokkos::View<Size*, Kokkos::HostSpace> all("tessera::checkpoint_sums", sums.size());
  std::copy(sums.begin(), sums.end(), all.data());
  ranks_.all_reduce(all);
  reach(SavePoint::written);
  on_first_rank(
      [&] {
        check_own_steps();
        const OpenFile file(file_.path, O_WRONLY);
        const std::string header =
            checkpoint_header(file_.tensors, state_, {all.data(), all.data() + all.extent(0)});
        file.write(0, header.data(), std::ssize(header));
        file.sync();
      },
      SavePoint::synced);
  on_first_rank(
      [&] {
        if (own_.empty()) take_history();
        own_.insert(state_.step);
        rename_durably(file_.path, path_);
      },
      SavePoint::renamed);
  last_ = path_;
  ++costs_.saves;
  costs_.written_bytes += bytes_;
  on_first_rank(
      [&] {
        remove_old(training_, state_.step, config_.keep, config_.keep_best);
        std::error_code unused;
        for (const std::string& name : names_in(training_))  // of runs that were killed
          if (name.ends_with(unfinished)) fs::remove(training_ / name, unused);
      },
      SavePoint::cleaned);
}

/// Throws ConfigError on all ranks if another run has gone on with this training. Such a run
/// removes the unfinished files of this one, so its name explains an error better than a missing
/// file.
void CheckpointStore::check_alone() {
  is_alone_ = false;
  collectively(ranks_, [&] {
    if (ranks_.rank() == 0) check_own_steps();
  });
  is_alone_ = true;
}

/// Throws ConfigError if another run has gone on with this training. File systems without locks let
/// it. For rank 0.
void CheckpointStore::check_own_steps() const {
  std::error_code unused;
  if (!fs::is_directory(training_, unused)) return;
  for (const Size step : steps_in(training_))
    if (step > first_ && !own_.contains(step) && is_complete(training_ / checkpoint_name(step)))
      throw ConfigError("checkpoint.directory", config_.directory,
                        "another run has gone on with this training and saved {}; this run ends "
                        "without another checkpoint",
                        (training_ / checkpoint_name(step)).string());
}

/// Gives a new folder the checkpoints up to the step from which it goes on. Files that users have
/// put beside them may be those of other trainings.
void CheckpointStore::take_history() const {
  std::error_code unused;
  if (!fs::is_directory(history_.training, unused)) return;
  for (const Size step : steps_in(history_.training, history_.step)) {
    const fs::path earlier = history_.training / checkpoint_name(step);
    std::string origin;
    outcome_of([&] { origin = read_state(earlier.string()).training; });
    if (fingerprint_in(origin) == fingerprint_in(history_.origin))
      fs::create_hard_link(earlier, training_ / checkpoint_name(step), unused);
  }
}

/// Runs `write`. If it fails, removes the unfinished file and throws the error.
void CheckpointStore::write_or_remove(const std::function<void()>& write) {
  const Outcome outcome = outcome_of(write);
  if (!outcome.failed()) return;
  writing_ = {};  // waits for a thread that has started
  std::error_code unused;
  if (ranks_.rank() == 0) fs::remove(temporary(), unused);
  if (outcome.code == ExitCode::wrong_result)
    throw Error(outcome.code, "{}; {} is not written", outcome.message, path_.string());
  check_alone();
  throw Error(outcome.code, outcome.message);
}

fs::path CheckpointStore::best() const {
  nlohmann::json step;
  collectively(ranks_, [&] {
    if (ranks_.rank() != 0) return;
    const Size last = own_.empty() ? first_ : *own_.rbegin();
    const std::vector<Size> best = steps_by_loss(training_, steps_in(training_, last));
    if (!best.empty()) step = best.front();
  });
  step = broadcast_json(ranks_, step);
  return step.is_null() ? fs::path() : training_ / checkpoint_name(step);
}

#define TESSERA_INSTANTIATE(T) \
  template void CheckpointStore::save(const Engine<T>&, const TrainingState&);
TESSERA_FOR_COMPUTE_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
