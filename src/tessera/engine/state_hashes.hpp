// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/engine/local_tensors.hpp>

namespace tessera {

/// 64-bit hashes of a training after a step: of the batch's loss sums, of the gradient of every
/// parameter, and of the parameter. A hash is a digest(), so it does not depend on
/// how ranks split the elements. Gradients are those of Engine::gradients(). T: the compute type.
template <class T>
class StateHashes {
 public:
  /// The tensors stay aliases of the engine's memory.
  StateHashes(const Plan& plan, const Mesh& mesh, const Engine<T>& engine);

  /// Returns the names: "loss", then "layer1/kernel.gradient", ... and "layer1/kernel", ... in the
  /// order of the model.
  const std::vector<std::string>& names() const { return names_; }
  /// Returns the hashes on every rank, in the order of names(). `batch` is the number of the step's
  /// batch in its epoch. Collective over the mesh: one all-reduce. Waits for the device.
  std::vector<std::uint64_t> operator()(Size batch) const;

 private:
  struct Part {
    LocalTensor<StateOf<T>> tensor;
    std::size_t name;
  };
  Mesh mesh_;
  const Engine<T>& engine_;
  std::vector<std::string> names_;
  std::vector<Part> parts_;  ///< that no other rank adds
  Range losses_;             ///< the rank's loss sums in a batch
  Vector<std::int64_t> sums_;
};

}  // namespace tessera
