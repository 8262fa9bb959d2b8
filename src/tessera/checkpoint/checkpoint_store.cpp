// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/checkpoint/checkpoint_names.hpp>
#include <tessera/checkpoint/checkpoint_store.hpp>
#include <tessera/checkpoint/checksums.hpp>
#include <tessera/checkpoint/contents.hpp>
#include <tessera/checkpoint/trial.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/io/durable_file.hpp>
#include <tessera/io/hdf5_file.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/process/log.hpp>

namespace tessera {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

void make_directory(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error || !fs::is_directory(directory, error))
    throw ConfigError("checkpoint.directory", directory,
                      "must be a directory that exists or can be created");
  if (access(directory.c_str(), R_OK | W_OK | X_OK) != 0)
    throw ConfigError("checkpoint.directory", directory, "must be writable: {}",
                      std::strerror(errno));
}

fs::path temporary(fs::path finished) { return finished += unfinished; }

/// Reserves the space of a file that rank 0 has created: without it, a collective write would leave
/// ranks waiting for each other. Each rank reserves a part, because file systems that cannot
/// reserve space write to every block. Collective.
void reserve_together(const std::string& file, const Communicator& ranks) {
  constexpr Size piece = 1 << 20;  // a multiple of blocks
  Size size = 0;
  collectively(ranks, [&] {
    if (ranks.rank() == 0) size = static_cast<Size>(fs::file_size(file));
  });
  size = broadcast_json(ranks, size);
  collectively(ranks, [&] {
    const Range pieces = balanced_split((size + piece - 1) / piece, ranks.size(), ranks.rank());
    const Size begin = pieces.begin * piece, end = std::min(pieces.end() * piece, size);
    if (begin < end) OpenFile(file, O_RDWR).reserve_space({begin, end - begin});
  });
}

/// Returns the file offset of each tensor, on all ranks. Collective.
std::vector<Size> places_in(const std::string& file, const std::vector<CheckpointTensor>& tensors,
                            const Communicator& ranks) {
  const Kokkos::View<Size*, Kokkos::HostSpace> places("tessera::checkpoint_places", tensors.size());
  collectively(ranks, [&] {
    if (ranks.rank() != 0) return;
    const Hdf5File created = Hdf5File::open(file);
    for (std::size_t t = 0; t < tensors.size(); ++t) places(t) = created.place_of(tensors[t].name);
  });
  ranks.broadcast(places, 0);
  return {places.data(), places.data() + places.extent(0)};
}

/// Measures the time of a scope in which training waits.
class ExposedTime {
 public:
  explicit ExposedTime(SaveCosts& costs) : costs_(costs) {}
  ~ExposedTime() { costs_.seconds += timer_.seconds(); }
  ExposedTime(const ExposedTime&) = delete;
  ExposedTime& operator=(const ExposedTime&) = delete;

 private:
  SaveCosts& costs_;
  Timer timer_;
};

/// Returns TrainingState::training of a file, if it can be read.
std::optional<std::string> training_of(const fs::path& path) {
  std::optional<std::string> training;
  outcome_of([&] { training = read_state(path.string()).training; });
  return training;
}

/// Returns the checkpoint of the latest step that has all its arrays; none if there is no
/// checkpoint. If none is complete, throws the Error of the one of the latest step.
std::optional<fs::path> newest_complete(const fs::path& directory) {
  Outcome first;
  for (const fs::path& path : checkpoints_in(directory)) {
    const Outcome outcome = outcome_of([&] {
      read_state(path.string());
      check_contents(Hdf5File::open(path.string()), path.string());
    });
    if (!outcome.failed()) return path;
    if (!first.failed()) first = outcome;
  }
  if (first.failed()) throw Error(first.code, first.message);
  return std::nullopt;
}

/// Returns infinity for a file that cannot be read or has no finite loss, so it is never the best.
double loss_of(const fs::path& path) {
  double loss = NAN;
  outcome_of([&] {
    const TrainingState state = read_state(path.string());
    const nlohmann::json config = nlohmann::json::parse(state.config);
    loss = state.loss(config.value("/data/validation_samples"_json_pointer, 0) > 0);
  });
  return std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity();
}

}  // namespace

CheckpointStore::CheckpointStore(const CheckpointConfig& config, const Communicator& ranks,
                                 SaveObserver observer, const std::optional<ResumedFrom>& resumed)
    : config_(config), ranks_(ranks), observer_(std::move(observer)) {
  collectively(ranks_, [&] {
    if (ranks_.rank() != 0) return;
    make_directory(config_.directory);
    check_replaceable(fs::path(config_.directory) / "latest");
    lock_ = std::make_unique<DirectoryLock>(config_.directory);
    training_ = resumed ? resumed->training : new_training();
    claim(resumed);
  });
  training_ = broadcast_json(ranks_, training_);
  lock_owner_ = broadcast_json(ranks_, lock_ ? lock_->owner() : "");
  check_shared();
  try_saving(config_.directory, ranks_);
}

/// Finds the files of this training, rejects those of another one, removes unfinished files. A
/// training that has files of later steps than the one it resumes from becomes a new branch.
void CheckpointStore::claim(const std::optional<ResumedFrom>& resumed) {
  bool begins_branch = false;
  for (const fs::path& path : checkpoints_in(config_.directory)) {
    const std::string name = path.filename().string();
    // A damaged file has no training. It must not keep this one from resuming.
    const auto other = resumed ? training_of(path) : std::optional(std::string());
    if (!other) continue;
    if (!resumed || !are_related(training_, *other)) {
      if (config_.overwrite) continue;
      throw ConfigError("checkpoint.directory", config_.directory,
                        "holds {} of another training; resume that with --resume, set another "
                        "directory, or replace it with checkpoint.overwrite = true",
                        name);
    }
    const Size step = *step_of_checkpoint(name);
    const bool is_own = step <= resumed->step && has_passed(training_, *other, step);
    (is_own ? own_ : abandoned_).insert(name);
    begins_branch |= !is_own && *other == training_;
  }
  if (begins_branch) training_ = new_branch(training_, resumed->step);
  std::error_code unused;
  for (const fs::path& path : files_in(config_.directory))
    if (path.filename().string().ends_with(unfinished)) fs::remove(path, unused);
}

/// Throws the same ConfigError on all ranks if one of them sees another directory than rank 0.
void CheckpointStore::check_shared() const {
  const bool sees_lock = DirectoryLock::is_visible(config_.directory, lock_owner_);
  const std::string apart = conclude_json(ranks_, sees_lock, [](const auto& all) {
    std::vector<int> without;
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      if (all[rank] == false) without.push_back(static_cast<int>(rank));
    return nlohmann::json(without.empty() ? "" : rank_list(without));
  });
  if (!apart.empty())
    throw ConfigError("checkpoint.directory", config_.directory,
                      "must be a directory that all ranks share; the file `lock` of rank 0 is not "
                      "there on {}",
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

template <class T>
void CheckpointStore::save(const Engine<T>& engine, const TrainingState& state) {
  finish();
  const ExposedTime exposed(costs_);
  path_ = fs::path(config_.directory) / checkpoint_name(state.step);
  const std::string file = temporary(path_).string();
  reach(SavePoint::begun);
  write_or_remove([&] {
    collectively(ranks_, [&] {
      check_finite("the loss of an epoch", state.epoch_losses.data(), state.epoch());
      check_finite("the loss of a batch", state.losses_so_far.data(), state.batch());
      check_finite("the loss of a layer", state.layer_losses_so_far.data(),
                   static_cast<Size>(state.layer_losses_so_far.size()));
      if (ranks_.rank() != 0) return;
      if (!lock_->is_held())
        throw ConfigError("checkpoint.directory", config_.directory,
                          "was taken over by another run, which found no sign of this one");
    });
    check_shared();
    collectively(ranks_, [&] {
      if (ranks_.rank() != 0) return;
      TrainingState own = state;
      own.training = training_;
      create_checkpoint(file, checkpoint_tensors(engine.plan()), own);
    });
    reserve_together(file, ranks_);
    reach(SavePoint::created);
    if (config_.async) return start_writing(engine);
    publish(write_tensors(file, ranks_, engine, [&] { reach(SavePoint::tensor_written); }));
  });
}

template <class T>
void CheckpointStore::start_writing(const Engine<T>& engine) {
  const std::string file = temporary(path_).string();
  std::vector<Size> places = places_in(file, checkpoint_tensors(engine.plan()), ranks_);
  collectively(ranks_, [&] {
    snapshot_->take(engine, ranks_.rank());
    // Does not capture `this`, because a store may be moved.
    const auto write = [file, places, snapshot = snapshot_, observer = observer_] {
      Written written{.began = Clock::now()};
      written.outcome = outcome_of([&] {
        written.sums = snapshot->write(file, places, [&] {
          if (observer) observer(SavePoint::tensor_written);
        });
      });
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
  const ExposedTime exposed(costs_);
  const Timer waiting;
  const Clock::time_point waits_from = Clock::now();
  const Written written = writing_.get();
  const std::chrono::duration<double> hidden = std::min(written.ended, waits_from) - written.began;
  costs_.hidden_seconds += std::max(hidden.count(), 0.0);
  write_or_remove([&] {
    raise_first_failure(ranks_, written.outcome, Site::current());
    costs_.waited_seconds += waiting.seconds();
    write_checksums(temporary(path_).string(), ranks_, snapshot_->tensors(), written.sums);
    publish(snapshot_->bytes());
  });
}

/// Makes the file the latest checkpoint.
void CheckpointStore::publish(Size bytes) {
  const fs::path file = temporary(path_), latest = fs::path(config_.directory) / "latest";
  reach(SavePoint::written);
  on_first_rank([&] { sync_to_disk(file); }, SavePoint::synced);
  on_first_rank([&] { rename_durably(file, path_); }, SavePoint::renamed);
  on_first_rank([&] { write_durably(temporary(latest), path_.filename().string() + "\n"); },
                SavePoint::latest_written);
  on_first_rank([&] { rename_durably(temporary(latest), latest); }, SavePoint::latest_renamed);
  last_ = path_;
  if (lock_) {
    own_.insert(path_.filename().string());
    abandoned_.erase(path_.filename().string());
  }
  ++costs_.saves;
  costs_.written_bytes += bytes;
  on_first_rank([&] { clean(); }, SavePoint::cleaned);
}

/// Runs `write`. If it fails, removes the unfinished file and throws the error.
void CheckpointStore::write_or_remove(const std::function<void()>& write) {
  const Outcome outcome = outcome_of(write);
  if (!outcome.failed()) return;
  writing_ = {};  // waits for a thread that has started
  std::error_code unused;
  if (lock_ && lock_->is_held()) fs::remove(temporary(path_), unused);
  if (outcome.code == ExitCode::wrong_result)
    throw Error(outcome.code, "{}; {} is not written", outcome.message, path_.string());
  throw Error(outcome.code, outcome.message);
}

/// Removes checkpoints of this training, except the newest and the best ones. Those of abandoned
/// branches count as its oldest. With checkpoint.overwrite it removes those of other trainings,
/// too. Ignores files that cannot be removed.
void CheckpointStore::clean() const {
  std::error_code unused;
  std::vector<fs::path> others, abandoned;
  for (fs::path& path : checkpoints_in(config_.directory)) {
    const std::string name = path.filename().string();
    if (own_.contains(name))
      others.push_back(std::move(path));
    else if (abandoned_.contains(name))
      abandoned.push_back(std::move(path));
    else if (config_.overwrite)
      fs::remove(path, unused);
  }
  others.insert(others.end(), abandoned.begin(), abandoned.end());
  if (config_.keep == 0 || static_cast<Size>(others.size()) <= config_.keep) return;
  others.erase(others.begin(), others.begin() + config_.keep);
  std::reverse(others.begin(), others.end());  // of equal losses, the oldest stays, as in best()
  std::vector<std::pair<double, fs::path>> by_loss;
  for (const fs::path& path : others) {
    const bool may_be_best = config_.keep_best > 0 && own_.contains(path.filename().string());
    by_loss.emplace_back(may_be_best ? loss_of(path) : INFINITY, path);
  }
  std::stable_sort(by_loss.begin(), by_loss.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < by_loss.size(); ++i)
    if (static_cast<Size>(i) >= config_.keep_best || !std::isfinite(by_loss[i].first))
      fs::remove(by_loss[i].second, unused);
}

fs::path CheckpointStore::best() const {
  std::string name;
  collectively(ranks_, [&] {
    if (ranks_.rank() != 0) return;
    double smallest = std::numeric_limits<double>::max();
    for (const fs::path& path : checkpoints_in(config_.directory))
      if (const double loss = own_.contains(path.filename().string()) ? loss_of(path) : INFINITY;
          loss <= smallest) {
        smallest = loss;
        name = path.filename().string();
      }
  });
  name = broadcast_json(ranks_, name);
  return name.empty() ? fs::path() : fs::path(config_.directory) / name;
}

std::optional<fs::path> CheckpointStore::latest(const fs::path& directory) {
  std::error_code unused;
  if (!fs::is_directory(directory, unused)) return std::nullopt;
  const fs::path file = directory / "latest";
  const bool has_latest = fs::exists(file, unused);
  const std::string name = has_latest ? std::string(trim(read_text(file))) : "";
  if (step_of_checkpoint(name) && fs::is_regular_file(directory / name, unused))
    return directory / name;
  // The first save may have ended before it wrote `latest`, or its checkpoint was removed.
  const auto found = newest_complete(directory);
  if (!has_latest) return found;
  const std::string problem = fmt::format(
      "{}: names {}, which is not a checkpoint in this directory", file.string(), one_line(name));
  if (!found) throw Error(ExitCode::usage, problem);
  log_warning(fmt::format("{}; taking {}, the newest one that is complete", problem,
                          found->filename().string()));
  return found;
}

template void CheckpointStore::save(const Engine<float>&, const TrainingState&);
template void CheckpointStore::save(const Engine<double>&, const TrainingState&);
template void CheckpointStore::save(const Engine<BFloat16>&, const TrainingState&);
template void CheckpointStore::save(const Engine<Float16>&, const TrainingState&);

}  // namespace tessera
