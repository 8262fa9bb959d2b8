// SPDX-License-Identifier: Apache-2.0
// All that plans, their memory and predictions know about a device. Kernels divide their work by
// the same description, so that a plan for another device has the launches and the scratch memory
// of that device.
#pragma once

#include <algorithm>

#include <tessera/base/device.hpp>
#include <tessera/nn/products/matmul_precision.hpp>

namespace tessera {

/// How layers divide products of small matrices.
struct Tiling {
  /// Limit on the elements that the matrices of one kind, of all samples, heads or modes that are
  /// multiplied at once, have in scratch memory: in that of each thread of a CPU.
  Size room;
  Size queries, keys;  ///< of a block of attention scores
  bool batches;        ///< one launch multiplies all matrices that are multiplied at once
  Size threads;        ///< of a CPU; 0 on a GPU

  /// Returns how many threads of a CPU share `count` items, each with scratch memory of its own.
  constexpr Size places(Size count) const {
    return std::clamp<Size>(count, 1, std::max<Size>(1, threads));
  }
  /// Returns how many of `count` samples, heads or modes, each with a matrix of so many elements in
  /// scratch memory, a layer multiplies at once.
  constexpr Size at_once(Size count, Size elements) const {
    return std::max<Size>(1, std::min(count, room / std::max<Size>(1, elements)));
  }
  /// The same for a layer that computes a sample or a mode whole on one thread of a CPU.
  constexpr Size by_thread(Size count, Size elements) const {
    return threads > 0 ? places(count) : at_once(count, elements);
  }
  /// Returns the launches of `count` products, of which `together` are multiplied at once.
  constexpr Size launches(Size count, Size together) const {
    return batches ? (count + together - 1) / together : count;
  }
};

/// A device, from a machine file (Machine::traits) or from this program.
struct DeviceTraits {
  Device device = this_device;
  /// The types of few bits that products read directly. Others convert copies of their operands.
  bool tf32 = false, bfloat16 = true, float16 = true;
  Size threads = 1;  ///< of a rank on a CPU

  bool multiplies(DType half) const { return half == DType::bfloat16 ? bfloat16 : float16; }
  /// On a CPU, a block of scores with its operands, and a few matrices for each thread, fit the
  /// second cache of a core. A GPU needs large products, and many small ones in a launch. In a
  /// fixed order of sums, it multiplies one matrix after another (fixed_order.hpp).
  constexpr Tiling tiling(bool fixed_order = false) const {
    if (device == Device::cpu) return {1 << 15, 64, 512, false, threads};
    return {1 << 24, 1024, 4096, !fixed_order, 0};
  }
};

/// Returns the traits of this program on the present processor or device.
inline DeviceTraits traits_of_this_device() {
  const auto is_native = [](DType half) { return half_products(half) != HalfProducts::emulated; };
  return {this_device, has_native_tf32(), is_native(DType::bfloat16), is_native(DType::float16),
          kernel_threads()};
}

}  // namespace tessera
