// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/base/view.hpp>
#include <tessera/nn/model_spec.hpp>
#include <tessera/plan/layers.hpp>
#include <tessera/plan/memory.hpp>
#include <tessera/plan/units.hpp>

namespace tessera {

/// Parameters, or their gradients, of one rank: units in layer order, each a row-major kernel and
/// then its bias. Layers are Views into whole units. What is sharded is kept as shares, and whole
/// units of it exist only while they are used, in a buffer that units take in turn.
template <class T>
class ParameterArena {
 public:
  /// Parameters of `state`; zero. `local`: the model with the rank's extents.
  static ParameterArena parameters(const ModelSpec& local, const StatePlan& state);
  /// Gradients of `state`; zero.
  static ParameterArena gradients(const ModelSpec& local, const StatePlan& state);

  /// What is kept: the shares of all units, or all whole units.
  const Vector<T>& flat() const { return flat_; }
  Vector<T> range(Range elements) const;  ///< of flat()
  /// The own part of a unit where it is kept.
  Vector<T> share(Size unit) const;
  /// A whole unit where layers use it; of a sharded one, whatever its buffer holds at the time.
  Vector<T> unit(Size unit) const;
  Matrix<T> kernel(Size layer) const;  ///< (in, out)
  Vector<T> bias(Size layer) const;    ///< (out), empty for a layer without bias

 private:
  struct Unit {
    T* whole;
    T* share;
    Size shared, in, out, bias;
  };
  ParameterArena(const std::string& label, const std::string& buffer_label, const ModelSpec& local,
                 const StatePlan& state, bool sharded, Size buffer, Size UnitPlan::*begin);

  Vector<T> flat_;
  Vector<T> buffer_;
  std::vector<Unit> units_;
};

/// What a chain of layers keeps between forward and backward. The gradients of the layers' outputs
/// share two buffers: backward of layer l reads that of its output from one and writes that of its
/// input to the other. Any number of rows up to the planned one may be asked for.
template <class T>
class ActivationArena {
 public:
  /// Allocates activation_elements(layouts, local, whole, rows).
  ActivationArena(const Layouts& layouts, const ModelSpec& local, const ModelSpec& whole,
                  const LocalRows& rows);

  Matrix<T> output(Size layer, Size rows) const;           ///< (rows, out)
  Matrix<T> preactivation(Size layer, Size rows) const;    ///< the output itself if not kept
  Matrix<T> output_gradient(Size layer, Size rows) const;  ///< (rows, out)
  /// The one place of what is redistributed.
  Matrix<T> redistributed(Size rows, Size cols) const;
  /// The one place of its parts as messages carry them.
  Matrix<T> packed(Size rows, Size cols) const;

 private:
  struct Offsets {
    Size width, output, preactivation, gradient;
  };
  Matrix<T> at(Size offset, Size rows, Size width) const;
  Vector<T> flat_;
  Vector<T> redistributed_;
  Vector<T> packed_;
  std::vector<Offsets> layers_;
};

}  // namespace tessera
