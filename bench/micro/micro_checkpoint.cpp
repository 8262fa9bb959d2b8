// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a network with Adam, beside plain HDF5 and plain POSIX calls for the same bytes.
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <unistd.h>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/split.hpp>
#include <tessera/checkpoint/checkpoint_store.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/io/durable_file.hpp>
#include <tessera/io/hdf5_file.hpp>

#include "micro/micro.hpp"

namespace tessera::bench {
namespace {

namespace fs = std::filesystem;

/// A directory in which all ranks write, while it lives.
class BenchDirectory {
 public:
  BenchDirectory(const Communicator& ranks, const std::string& parent) : ranks_(ranks) {
    path_ = broadcast_json(ranks, fmt::format("{}/tessera-micro-{}", parent, getpid()));
    collectively(ranks, [&] {
      std::error_code error;
      if (ranks.rank() == 0 && (!fs::create_directories(path_, error) || error))
        throw ConfigError("--directory", parent, "must be a writable directory");
    });
  }
  ~BenchDirectory() {
    std::error_code unused;
    if (ranks_.rank() == 0) fs::remove_all(path_, unused);
  }
  BenchDirectory(const BenchDirectory&) = delete;
  BenchDirectory& operator=(const BenchDirectory&) = delete;
  std::string file(const char* name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  Communicator ranks_;
  std::string path_;
};

/// A network whose state is shared out over all ranks, and where it is written.
class CheckpointBench {
 public:
  CheckpointBench(const MicroOptions& options, const Communicator& ranks, bool async)
      : ranks_(ranks),
        directory_(ranks, options.directory),
        mesh_(ranks, MeshShape({{"data", Size{ranks.size()}}})),
        engine_(plan_of_state(options), mesh_, {}),
        store_({.directory = directory_.path(), .keep = 1, .async = async}, ranks) {}

  double bytes() const {
    Size all = 0;
    for (Size rank = 0; rank < ranks_.size(); ++rank)
      all += checkpoint_bytes(engine_.plan(), rank).written;
    return static_cast<double>(all);
  }
  void save() {
    store_.save(engine_, {.step = ++saves_, .config = "{}", .provenance = "{}"});
    store_.finish();
  }
  void read() const { read_tensors(store_.last().string(), ranks_, engine_); }
  Size count_wrong() {
    save();
    return outcome_of([&] { verify_checkpoint(store_.last().string()); }).failed() ? 1 : 0;
  }

 private:
  Plan plan_of_state(const MicroOptions& options) const {
    Config config;
    config.model.mlp.widths = options.widths;
    config.data.kind = DataKind::random;
    config.training.distributed.strategy = Strategy::zero1;
    config.data.samples = config.training.batch_size = ranks_.size();
    return make_plan(plan_input(resolve(config, ranks_.size()), mesh_.shape()));
  }

  Communicator ranks_;
  BenchDirectory directory_;
  Mesh mesh_;
  Engine<float> engine_;
  CheckpointStore store_;
  Size saves_ = 0;
};

/// The same bytes as one array, of which each rank has a part in its memory.
class PlainBench {
 public:
  PlainBench(const MicroOptions& options, const Communicator& ranks, double bytes)
      : ranks_(ranks),
        directory_(ranks, options.directory),
        elements_(static_cast<Size>(bytes) / static_cast<Size>(sizeof(float))),
        part_(balanced_split(elements_, ranks.size(), ranks.rank())),
        values_(static_cast<std::size_t>(part_.count), 1.0F) {}

  void write_posix() const {
    if (ranks_.rank() == 0) std::ofstream(path("plain"), std::ios::trunc);
    ranks_.barrier();
    const OpenFile file(path("plain"), O_WRONLY);
    file.write(part_.begin * size, values_.data(), part_.count * size);
    file.sync();
  }
  void read_posix() {
    std::ifstream file(path("plain"), std::ios::binary);
    file.seekg(part_.begin * size);
    file.read(reinterpret_cast<char*>(values_.data()), part_.count * size);
  }
  void write_hdf5() const {
    if (ranks_.rank() == 0) {
      Hdf5File file = Hdf5File::create(path("plain.h5"));
      file.add_array({"a", {elements_}, DType::float32});
      file.close();
    }
    ranks_.barrier();
    Hdf5File file = Hdf5File::change(path("plain.h5"), ranks_);
    file.write("a", DType::float32, {{{part_.begin}, {part_.count}}}, values_.data());
    file.close();
    if (ranks_.rank() == 0) sync_to_disk(path("plain.h5"));
  }
  void read_hdf5() {
    Hdf5File::open(path("plain.h5"))
        .read("a", DType::float32, {{{part_.begin}, {part_.count}}}, values_.data());
  }

 private:
  static constexpr auto size = static_cast<Size>(sizeof(float));
  std::string path(const char* name) const { return directory_.file(name); }

  Communicator ranks_;
  BenchDirectory directory_;
  Size elements_;
  Range part_;
  std::vector<float> values_;
};

void add_checkpoints(MicroContext& context, bool async) {
  const auto make = [&context, async] {
    return std::make_shared<CheckpointBench>(context.options(), context.mesh().world(), async);
  };
  context.add(async ? "checkpoint/write/tessera_async" : "checkpoint/write/tessera", [=] {
    const auto bench = make();
    return MicroCase{[=] { bench->save(); },
                     {{"bytes_per_second", bench->bytes()}},
                     [=] { return bench->count_wrong(); }};
  });
  if (async) return;
  context.add("checkpoint/read/tessera", [=] {
    const auto bench = make();
    bench->save();
    return MicroCase{[=] { bench->read(); }, {{"bytes_per_second", bench->bytes()}}};
  });
}

void add_plain(MicroContext& context, const std::string& library, void (PlainBench::*write)() const,
               void (PlainBench::*read)()) {
  const auto make = [&context] {
    const Communicator& ranks = context.mesh().world();
    const double bytes = CheckpointBench(context.options(), ranks, false).bytes();
    return std::pair(std::make_shared<PlainBench>(context.options(), ranks, bytes), bytes);
  };
  context.add("checkpoint/write/" + library, [=] {
    const auto [bench, bytes] = make();
    return MicroCase{[=, bench = bench] { (*bench.*write)(); }, {{"bytes_per_second", bytes}}};
  });
  context.add("checkpoint/read/" + library, [=, &context] {
    const auto [bench, bytes] = make();
    (*bench.*write)();
    context.mesh().world().barrier();
    return MicroCase{[=, bench = bench] { (*bench.*read)(); }, {{"bytes_per_second", bytes}}};
  });
}

}  // namespace

void add_checkpoint_benchmarks(MicroContext& context) {
  const std::string& directory = context.options().directory;
  if (directory.empty()) return;
  if (!has_hdf5())
    throw ConfigError("--directory", directory,
                      "needs a program that was built with parallel HDF5 (TESSERA_ENABLE_HDF5)");
  const BenchDirectory can_be_made(context.mesh().world(), directory);
  for (const bool async : {false, true}) add_checkpoints(context, async);
  add_plain(context, "hdf5", &PlainBench::write_hdf5, &PlainBench::read_hdf5);
  add_plain(context, "posix", &PlainBench::write_posix, &PlainBench::read_posix);
}

}  // namespace tessera::bench
