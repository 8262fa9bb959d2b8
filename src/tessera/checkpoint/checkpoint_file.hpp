// SPDX-License-Identifier: Apache-2.0
// One checkpoint: a safetensors file of whole tensors, the same whatever mesh wrote it. The header
// has the rest of the training's state and a checksum of each tensor.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <tessera/base/half_float.hpp>
#include <tessera/checkpoint/training_state.hpp>
#include <tessera/io/safetensors.hpp>
#include <tessera/plan/checkpoint_plan.hpp>

namespace tessera {

/// The most bytes that a rank copies from the device, writes or reads at once.
inline constexpr Size checkpoint_piece = 32 << 20;

/// Returns the beginning of a file, up to the first element of the first tensor. `sums`: the
/// checksums, one per tensor; the length does not depend on them.
std::string checkpoint_header(const std::vector<CheckpointTensor>& tensors,
                              const TrainingState& state, const std::vector<std::uint64_t>& sums);

/// Returns the byte at which each tensor begins after a header of this length, and the file's end.
std::vector<Size> places_of(const std::vector<CheckpointTensor>& tensors, Size header_bytes);

/// A tensor of an existing file.
struct StoredTensor {
  SafetensorsArray array;
  DType type = DType::float32;
  std::uint64_t checksum = 0;
  std::string axes;  ///< names of its dimensions
};

/// A complete checkpoint, open for reading by one process. The constructor reads and checks all but
/// the elements. Throws Error (usage) for a file that is not a checkpoint, has a newer version, is
/// cut off or whose header is damaged.
class CheckpointFile {
 public:
  explicit CheckpointFile(const std::string& path);

  const SafetensorsFile& file() const { return file_; }
  const TrainingState& state() const { return state_; }
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  /// Returns a whole tensor. T: its floating-point type. Throws Error (usage) if its elements do
  /// not have its checksum.
  template <class T>
  std::vector<T> values(const std::string& name) const;
  /// Calls f(values) with a whole tensor of any type. Throws like values().
  template <class F>
  void with_values(const std::string& name, const F& f) const {
    with_compute_type(tensors_.at(name).type, [&]<class T>(T) { f(values<T>(name)); });
  }

  /// Returns true for a file that says it is a checkpoint, whether or not it is damaged.
  static bool is_checkpoint(const SafetensorsFile& file);

 private:
  SafetensorsFile file_;
  TrainingState state_;
  std::map<std::string, StoredTensor> tensors_;
};

/// Returns true for the tensors of an optimizer, "moment1/layer1/kernel".
bool is_moment(const std::string& name);

/// Returns the state of a checkpoint. Throws like CheckpointFile.
TrainingState read_state(const std::string& path);

/// Element type and shape of arrays by their names: "float32 (3, 5)".
using ArrayTexts = std::map<std::string, std::string>;

/// Returns how the arrays of a file differ from those that are wanted, in phrases such as
/// "layer1/kernel is float32 (3, 5), not float32 (3, 9)", "layer2/bias is missing" and
/// "layer3/bias is unknown". Returns "" if they are the same.
std::string misfits(const ArrayTexts& wanted, const ArrayTexts& found);

}  // namespace tessera
