// SPDX-License-Identifier: Apache-2.0
// A training on samples from files equals one on generated samples, also after it resumes.
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <tessera/app/export.hpp>

#include "checkpoint/resume_support.hpp"
#include "hdf5_writer.hpp"

namespace tessera {
namespace {

using checkpoint_test::End;
using checkpoint_test::expect_resumes;
using checkpoint_test::expect_same_end;
using checkpoint_test::run;
using checkpoint_test::SharedDirectory;
using train_test::error_everywhere;
using train_test::Experiment;
using train_test::primes;

/// Writes the samples to files from rank 0 and returns a set-up that reads them. Collective.
Experiment from_files(Experiment setup, DataKind kind, const SharedDirectory& directory) {
  DataConfig& data = setup.data;
  const Size samples = data.samples + data.validation_samples;
  const ModelSpec model = make_model(setup.model);
  const Matrix<float> x("x", samples, model.input_width), y("y", samples, model.target_width());
  row_of(data.kind).fill.run(data, model, DataBlock<float>{{0, samples}, x, y});
  const bool is_hdf5 = kind == DataKind::hdf5;
  data.kind = kind;
  data.file = is_hdf5 ? directory.file("data.h5") : "";
  data.x = is_hdf5 ? "x" : directory.file("x.npy");
  data.y = is_hdf5 ? "y" : directory.file("y.npy");
  const Communicator world = Communicator::world();
  if (world.rank() == 0) {
    std::optional<test::Hdf5Writer> file;
    if (is_hdf5) file.emplace(data.file);
    for (const auto& [name, values] : {std::pair(data.x, x), std::pair(data.y, y)}) {
      const Shape shape{samples, static_cast<Size>(values.extent(1))};
      const Vector<float> all(values.data(), values.span());
      if (!is_hdf5) {
        write_npy(name, all, shape);
        continue;
      }
      const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), all);
      file->add(name.c_str(), shape, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, host.data());
    }
  }
  world.barrier();
  return setup;
}

TEST(ResumeFiles, ShuffledSamplesOfFilesAreReadFromTheRightRow) {
  Experiment setup = primes();
  setup.data.validation_samples = 7;
  setup.data.shuffle = true;
  const End expected = run<float>(setup, {});
  for (const DataKind kind : {DataKind::npy, DataKind::hdf5}) {
    SCOPED_TRACE(name_of(kind));
    const SharedDirectory directory;
    const Experiment reads = from_files(setup, kind, directory);
    expect_same_end(run<float>(reads, {}), expected);
    expect_resumes<float>(reads, {2, 4});
  }
}

/// The same files, moved to another directory. Collective.
Experiment moved(Experiment setup, const SharedDirectory& to) {
  for (std::string* path : {&setup.data.file, &setup.data.x, &setup.data.y}) {
    if (!path->starts_with('/')) continue;
    const std::string place = to.file(std::filesystem::path(*path).filename().string());
    if (Communicator::world().rank() == 0) std::filesystem::rename(*path, place);
    *path = place;
  }
  Communicator::world().barrier();
  return setup;
}

// Checksums identify data, not paths.
TEST(ResumeFiles, DataMayMoveButNotChange) {
  for (const DataKind kind : {DataKind::npy, DataKind::hdf5}) {
    SCOPED_TRACE(name_of(kind));
    const SharedDirectory directory, other, saves;
    const Experiment setup = from_files(primes(), kind, directory);
    const End whole = run<float>(setup, {.config = {.directory = saves.path(), .every_steps = 3}});
    const Experiment now = moved(setup, other);
    expect_same_end(run<float>(now, {}, checkpoint_test::file_of(saves, 3)), whole);
    Experiment changed = primes();
    changed.data.seed = 9;
    changed = from_files(changed, kind, directory);
    changed.data.seed = setup.data.seed;
    const std::string in_file =
        kind == DataKind::hdf5 ? "data.file = " + changed.data.file + ", " : "";
    EXPECT_EQ(
        error_everywhere([&] { run<float>(changed, {}, checkpoint_test::file_of(saves, 3)); }),
        checkpoint_test::file_of(saves, 3) + ": was written with data other than " + in_file +
            "data.x = " + changed.data.x + ", data.y = " + changed.data.y);
  }
}

}  // namespace
}  // namespace tessera
