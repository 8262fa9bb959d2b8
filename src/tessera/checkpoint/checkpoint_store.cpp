// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/checkpoint/checkpoint_store.hpp>
#include <tessera/checkpoint/checksums.hpp>
#include <tessera/checkpoint/trial.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/io/durable_file.hpp>
#include <tessera/io/hdf5_file.hpp>
#include <tessera/io/whole_file.hpp>

namespace tessera {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view unfinished = ".unfinished";

std::string name_of_step(Size step) { return fmt::format("step_{:010}.h5", step); }

bool is_checkpoint_name(const std::string& name) {
  return name.starts_with("step_") && name.ends_with(".h5");
}

/// Throws ConfigError if the directory cannot be read.
std::vector<fs::path> files_in(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    files.push_back(entry->path());
  if (error)
    throw ConfigError("checkpoint.directory", directory.string(), "cannot be read: {}",
                      error.message());
  return files;
}

/// Returns the checkpoints, newest first. Broken links do not count.
std::vector<fs::path> checkpoints_in(const fs::path& directory) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  for (const fs::path& path : files_in(directory)) {
    if (!is_checkpoint_name(path.filename().string())) continue;
    std::error_code error;
    const fs::file_time_type time = fs::last_write_time(path, error);
    if (error != std::errc::no_such_file_or_directory) found.emplace_back(time, path);
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<fs::path> paths;
  for (auto& [time, path] : found) paths.push_back(std::move(path));
  return paths;
}

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

/// Returns a random identity.
std::string new_training() {
  std::random_device draw;
  return fmt::format("{:08x}{:08x}{:08x}", draw(), draw(), draw());
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
                                 SaveObserver observer, const std::optional<std::string>& resumed)
    : config_(config), ranks_(ranks), observer_(std::move(observer)) {
  training_ = broadcast_json(ranks_, resumed.value_or(new_training()));
  collectively(ranks_, [&] {
    if (ranks_.rank() != 0) return;
    make_directory(config_.directory);
    check_replaceable(fs::path(config_.directory) / "latest");
    lock_ = std::make_unique<DirectoryLock>(config_.directory);
    claim(!resumed);
  });
  try_saving(config_.directory, ranks_);
}

/// Finds the files of this training, rejects those of another one, removes unfinished files.
void CheckpointStore::claim(bool is_new) {
  for (const fs::path& path : checkpoints_in(config_.directory)) {
    const std::string name = path.filename().string();
    // A damaged file has no training. It must not keep this one from resuming.
    const auto training = is_new ? std::optional(std::string()) : training_of(path);
    if (training == training_)
      own_.insert(name);
    else if (training && !config_.overwrite)
      throw ConfigError("checkpoint.directory", config_.directory,
                        "holds {} of another training; resume that with --resume, set another "
                        "directory, or replace it with checkpoint.overwrite = true",
                        name);
  }
  std::error_code unused;
  for (const fs::path& path : files_in(config_.directory))
    if (path.filename().string().ends_with(unfinished)) fs::remove(path, unused);
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
  path_ = fs::path(config_.directory) / name_of_step(state.step);
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
  if (lock_) own_.insert(path_.filename().string());
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

/// Removes checkpoints of this training, except the newest and the best ones. With
/// checkpoint.overwrite it removes those of other trainings, too. Ignores files that cannot be
/// removed.
void CheckpointStore::clean() const {
  std::error_code unused;
  std::vector<fs::path> others;
  for (fs::path& path : checkpoints_in(config_.directory)) {
    if (own_.contains(path.filename().string()))
      others.push_back(std::move(path));
    else if (config_.overwrite)
      fs::remove(path, unused);
  }
  if (config_.keep == 0 || static_cast<Size>(others.size()) <= config_.keep) return;
  others.erase(others.begin(), others.begin() + config_.keep);
  std::vector<std::pair<double, fs::path>> by_loss;
  for (const fs::path& path : others)
    by_loss.emplace_back(config_.keep_best > 0 ? loss_of(path) : 0, path);
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
  const fs::path file = directory / "latest";
  if (fs::exists(file, unused)) {
    const std::string name(trim(read_text(file)));
    const fs::path path = directory / name;
    if (!is_checkpoint_name(name) || !fs::is_regular_file(path, unused))
      throw Error(ExitCode::usage, "{}: names {}, which is not a checkpoint in this directory",
                  file.string(), one_line(name));
    return path;
  }
  // The first save may have ended before it wrote `latest`.
  if (!fs::is_directory(directory, unused)) return std::nullopt;
  const std::vector<fs::path> found = checkpoints_in(directory);
  return found.empty() ? std::nullopt : std::optional(found.front());
}

template void CheckpointStore::save(const Engine<float>&, const TrainingState&);
template void CheckpointStore::save(const Engine<double>&, const TrainingState&);
template void CheckpointStore::save(const Engine<BFloat16>&, const TrainingState&);
template void CheckpointStore::save(const Engine<Float16>&, const TrainingState&);

}  // namespace tessera
