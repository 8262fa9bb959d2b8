// SPDX-License-Identifier: Apache-2.0
// The parameters of another training, from which a training starts: those of a checkpoint, a
// safetensors file with the names that model_export writes, or a model of Hugging Face's
// transformers: a directory with config.json and safetensors files, one of these files, or an
// index of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tessera/checkpoint/tensors.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/config/config.hpp>
#include <tessera/engine/engine.hpp>

namespace tessera {

struct WeightFiles;

class InitialWeights {
 public:
  /// Opens the files. Checks that they have exactly the parameters of the model, with their shapes,
  /// and that the configuration has the settings of a config.json beside them. Throws the same
  /// Error (usage) on every rank; it lists the arrays or settings that do not fit. Collective.
  InitialWeights(const std::string& path, const Communicator& ranks, const Config& config);

  /// Replaces the engine's parameters by those of the files, converted to the engine's type. Each
  /// rank reads what it keeps, and returns the bytes. Throws the same Error (usage) on every rank,
  /// also for a value that is not finite or is damaged. Collective.
  template <class T>
  Size read(const Communicator& ranks, Engine<T>& engine) const;

 private:
  std::shared_ptr<WeightFiles> files_;
  std::vector<TensorSource> sources_;  ///< of the model's parameters, in files_
};

}  // namespace tessera
