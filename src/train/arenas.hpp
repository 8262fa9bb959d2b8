// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/base/view.hpp>
#include <tessera/nn/model_spec.hpp>

namespace tessera {

/// One flat buffer of a model's size, for parameters or for their gradients: units in layer order,
/// each a row-major kernel and then its bias. Layers are Views into it.
template <class T>
class ParameterArena {
 public:
  /// Allocates; zero.
  ParameterArena(const std::string& label, const ModelSpec& model);

  const Vector<T>& flat() const { return flat_; }
  Vector<T> range(Size begin, Size count) const;
  Matrix<T> kernel(Size layer) const;  ///< (in, out)
  Vector<T> bias(Size layer) const;    ///< (out), empty for a layer without bias

 private:
  struct Unit {
    Size begin, in, out, bias;
  };
  Vector<T> flat_;
  std::vector<Unit> units_;
};

/// What a chain of layers keeps between forward and backward, for any number of rows up to `rows`.
/// The gradients of the layers' outputs share two buffers: backward of layer l reads that of its
/// output from one and writes that of its input to the other.
template <class T>
class ActivationArena {
 public:
  /// Allocates activation_elements(model, rows).total() elements.
  ActivationArena(const ModelSpec& model, Size rows);

  Matrix<T> output(Size layer, Size rows) const;           ///< (rows, out)
  Matrix<T> preactivation(Size layer, Size rows) const;    ///< the output itself if not kept
  Matrix<T> output_gradient(Size layer, Size rows) const;  ///< (rows, out)

 private:
  struct Offsets {
    Size width, output, preactivation, gradient;
  };
  Matrix<T> at(Size offset, Size rows, Size width) const;
  Vector<T> flat_;
  std::vector<Offsets> layers_;
};

}  // namespace tessera
