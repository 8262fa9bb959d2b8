// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <tessera/checkpoint/checkpoint_store.hpp>
#include <tessera/checkpoint/inspection.hpp>
#include <tessera/checkpoint/runs.hpp>
#include <tessera/checkpoint/trainings.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/engine/local_tensors.hpp>
#include <tessera/io/durable_file.hpp>
#include <tessera/train/trainer.hpp>

#include "device_data.hpp"
#include "engine/strategy_support.hpp"
#include "temporary_directory.hpp"

namespace tessera::checkpoint_test {

/// One directory for all ranks; rank 0 makes and removes it. Collective.
class SharedDirectory {
 public:
  SharedDirectory() {
    if (world_.rank() == 0) own_.emplace();
    path_ = broadcast_json(world_, own_ ? own_->path().string() : "").get<std::string>();
  }
  ~SharedDirectory() { world_.barrier(); }
  SharedDirectory(const SharedDirectory&) = delete;
  SharedDirectory& operator=(const SharedDirectory&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  Communicator world_ = Communicator::world();
  std::optional<test::TemporaryDirectory> own_;
  std::string path_;
};

inline Plan plan_on(const train_test::Experiment& setup, const MeshShape& mesh) {
  Config config{setup.model, setup.data, setup.training};
  return make_plan(plan_input(config, mesh));
}

/// Returns the test value of element `place` of a tensor. Neighbours differ.
template <class S>
S element_of(const std::string& name, Size place) {
  const auto start = static_cast<Size>(std::hash<std::string>{}(name) % 100003);
  return static_cast<S>(start) / 256 + static_cast<S>(place);
}

/// Calls f(tensor, values, expected values) for each part that a rank keeps.
template <class T, class F>
void for_each_part(const Engine<T>& engine, Size rank, const F& f) {
  const std::vector<CheckpointTensor> tensors = checkpoint_tensors(engine.plan());
  for (const CheckpointPart& part : checkpoint_parts(engine.plan(), rank)) {
    const CheckpointTensor& tensor = tensors[part.tensor];
    std::vector<StateOf<T>> expected;
    for_each_run(tensor.shape, part.part.piece, part.part.kept, [&](Size, Size place, Size count) {
      for (Size i = 0; i < count; ++i)
        expected.push_back(element_of<StateOf<T>>(tensor.name, place + i));
    });
    f(tensor, local_tensor(engine, part.part).values, expected);
  }
}

template <class T>
void set_elements(const Engine<T>& engine, Size rank) {
  for_each_part(engine, rank, [](const auto&, const auto& values, const auto& expected) {
    Kokkos::deep_copy(values, test::to_device(expected));
  });
}

template <class T>
void expect_elements(const Engine<T>& engine, Size rank) {
  for_each_part(engine, rank, [](const auto& tensor, const auto& values, const auto& expected) {
    EXPECT_EQ(test::to_host(values), expected) << tensor.name;
  });
}

/// Writes a checkpoint without a store, in pieces of at most `piece` bytes, or from a copy.
/// Collective.
template <class T>
void write_file(const std::string& path, const Communicator& ranks, const Engine<T>& engine,
                const TrainingState& state = {}, Size piece = checkpoint_piece,
                bool from_copy = false) {
  const std::vector<CheckpointTensor> tensors = checkpoint_tensors(engine.plan());
  std::vector<std::uint64_t> sums(tensors.size());
  const Size header_bytes = std::ssize(checkpoint_header(tensors, state, sums));
  const TensorFile file{path, tensors, places_of(tensors, header_bytes)};
  collectively(ranks, [&] {
    if (ranks.rank() == 0) OpenFile made(path, O_WRONLY | O_CREAT | O_TRUNC);
  });
  if (from_copy) {
    Snapshot copy;
    copy.take(engine, ranks.rank());
    sums = copy.write(file);
  } else {
    sums = write_tensors(file, engine, ranks.rank(), piece);
  }
  const Kokkos::View<Size*, Kokkos::HostSpace> all("sums", sums.size());
  std::copy(sums.begin(), sums.end(), all.data());
  ranks.all_reduce(all);
  collectively(ranks, [&] {
    if (ranks.rank() != 0) return;
    const std::string header =
        checkpoint_header(tensors, state, {all.data(), all.data() + all.size()});
    OpenFile(path, O_WRONLY).write(0, header.data(), std::ssize(header));
  });
}

/// Replaces bytes of a tensor from byte `begin` on.
inline void change_tensor(const std::string& path, const std::string& name, Size begin,
                          const void* bytes, Size count) {
  const Range place = SafetensorsFile(path).arrays().at(name).bytes;
  OpenFile(path, O_WRONLY).write(place.begin + begin, bytes, count);
}

/// Returns the newest complete checkpoint of the only training in a directory; "" without one.
inline std::string newest_in(const std::filesystem::path& directory) {
  const auto trainings = trainings_in(directory);
  EXPECT_LE(trainings.size(), 1U);
  return trainings.empty() ? "" : newest_complete(trainings.front())->string();
}

/// Returns the checkpoint of a step in the only training that has it, or where it would be.
inline std::string file_of(const std::string& directory, Size step) {
  std::string file = directory + "/" + checkpoint_name(step);
  std::error_code unused;
  for (const auto& entry : std::filesystem::directory_iterator(directory, unused)) {
    if (!entry.is_directory()) continue;
    file = entry.path() / checkpoint_name(step);
    if (std::filesystem::exists(file)) return file;
  }
  return file;
}

/// Writes a checkpoint of test values from rank 0 alone. Collective.
template <class T>
void write_alone(const std::string& path, const train_test::Experiment& setup) {
  const Communicator world = Communicator::world();
  const Communicator alone = world.alone("alone");
  const Mesh mesh(alone, MeshShape({{"data", 1}}));
  const Engine<T> engine(plan_on(setup, mesh.shape()), mesh, StepOptions::of(setup.training));
  if (world.rank() == 0) {
    set_elements(engine, 0);
    write_file(path, alone, engine);
  }
  world.barrier();
}

/// Strategies on meshes of this launch, with stages of a pipeline as well, by what they are: at
/// most `most` of them, spread over the list, from `first` on.
inline std::vector<std::pair<std::string, train_test::Experiment>> some_strategies(
    const train_test::Experiment& base, std::size_t most, std::size_t first) {
  std::vector<std::pair<std::string, train_test::Experiment>> all, some;
  train_test::for_strategies(
      base, [&](const auto& setup, const std::string& what) { all.emplace_back(what, setup); });
  const Size ranks = Communicator::world().size();
  for (const char* strategy : {"data", "zero1", "fsdp"})
    if (ranks % 2 == 0)
      all.emplace_back(std::string(strategy) + " on stages",
                       train_test::on_mesh(base, {{"pipeline", 2}, {"data", ranks / 2}}, strategy));
  const std::size_t stride = (all.size() + most - 1) / most;
  for (std::size_t i = first % stride; i < all.size(); i += stride) some.push_back(all[i]);
  return some;
}

}  // namespace tessera::checkpoint_test
