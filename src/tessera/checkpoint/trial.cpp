// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include <tessera/checkpoint/trial.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/io/hdf5_file.hpp>

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// Each rank writes its number to a file that rank 0 has created.
void write_trial(const std::string& file, const Communicator& ranks) {
  const Size rank = ranks.rank();
  collectively(ranks, [&] {
    if (rank != 0) return;
    Hdf5File created = Hdf5File::create(file);
    created.add_array({"ranks", {ranks.size()}, DType::int64});
    created.close();
  });
  Hdf5File shared = collectively(ranks, [&] { return Hdf5File::change(file, ranks); });
  const Outcome written = outcome_of([&] {
    shared.write("ranks", DType::int64, {{{rank}, {1}}}, &rank);
  });
  const Outcome closed = outcome_of([&] { shared.close(); });
  raise_first_failure(ranks, written.failed() ? written : closed, Site::current());
}

}  // namespace

void try_saving(const std::string& directory, const Communicator& ranks) {
  const std::string file = fs::path(directory) / "trial.h5.unfinished";
  const Outcome outcome = outcome_of([&] { write_trial(file, ranks); });
  std::error_code unused;
  if (ranks.rank() == 0) fs::remove(file, unused);
  if (outcome.code == ExitCode::usage)
    throw ConfigError("checkpoint.directory", directory, "cannot hold checkpoints: {}",
                      outcome.message);
  if (outcome.failed()) throw Error(outcome.code, outcome.message);
}

}  // namespace tessera
