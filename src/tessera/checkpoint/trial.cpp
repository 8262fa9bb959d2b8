// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <filesystem>

#include <tessera/checkpoint/trial.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/io/durable_file.hpp>
#include <tessera/io/hdf5_file.hpp>

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* trial_array = "ranks";

/// Each rank writes its number to a file that rank 0 creates, renames and removes.
void write_trial(const fs::path& file, const fs::path& renamed, bool async,
                 const Communicator& ranks) {
  const Size rank = ranks.rank();
  Size place = 0;
  collectively(ranks, [&] {
    if (rank != 0) return;
    Hdf5File created = Hdf5File::create(file.string());
    created.add_array({trial_array, {ranks.size()}, DType::int64});
    place = created.place_of(trial_array);
    created.close();
  });
  if (async) {
    place = broadcast_json(ranks, place);
    collectively(ranks, [&] {
      const OpenFile shared(file, O_WRONLY);
      shared.write(place + rank * Size{sizeof rank}, &rank, sizeof rank);
      shared.sync();
    });
  } else {
    Hdf5File shared = collectively(ranks, [&] { return Hdf5File::change(file.string(), ranks); });
    const Outcome written = outcome_of([&] {
      shared.write(trial_array, DType::int64, {{{rank}, {1}}}, &rank);
    });
    const Outcome closed = outcome_of([&] { shared.close(); });
    raise_first_failure(ranks, written.failed() ? written : closed, Site::current());
  }
  collectively(ranks, [&] {
    if (rank != 0) return;
    Hdf5File changed = Hdf5File::change(file.string());
    changed.set_attribute("", "format", std::string("trial"));
    changed.close();
    sync_to_disk(file);
    rename_durably(file, renamed);
  });
}

}  // namespace

void try_saving(const std::string& directory, bool async, const Communicator& ranks) {
  const fs::path file = fs::path(directory) / "trial.h5.unfinished",
                 renamed = fs::path(directory) / "trial.unfinished";
  const Outcome outcome = outcome_of([&] { write_trial(file, renamed, async, ranks); });
  std::error_code unused;
  if (ranks.rank() == 0)
    for (const fs::path& path : {file, renamed}) fs::remove(path, unused);
  if (outcome.code == ExitCode::usage)
    throw ConfigError("checkpoint.directory", directory, "cannot hold checkpoints: {}",
                      outcome.message);
  if (outcome.failed()) throw Error(outcome.code, outcome.message);
}

}  // namespace tessera
