// SPDX-License-Identifier: Apache-2.0
// What every training must show, on any mesh, with any strategy and option.
#pragma once

#include "engine/serial_training.hpp"

namespace tessera::train_test {

/// Returns the end of the same training on this rank alone, in one microbatch. Where train_layers()
/// can, the layers train in double; with rounded operands or a fixed order of sums, the engine
/// trains alone. Equal trainings are made once.
const Trained& trained_alone(const Experiment& setup);

/// Trains on all ranks, in the type of the setup, and expects that
/// - losses, gradients and parameters are those of one rank; with numerics.reproducible their bits,
/// - calls, bytes and each line of memory are as planned, and warm steps allocate nothing,
/// - all ranks have the same losses and parameters,
/// - predictions and evaluation are those of the layers with these parameters.
/// Collective.
void expect_trains_like_one_rank(const Experiment& setup, const CommOptions& comm = {});

/// Expects that calls, bytes and each line of memory are as planned, that warm steps allocate
/// nothing, that losses are finite and that `comm.fake` is the rank. Collective.
void expect_as_planned(const Experiment& setup, const CommOptions& comm);

/// Expects that `reads`, on any mesh, continues what `writes` saved after four steps, and ends like
/// one rank. Collective.
void expect_resumes_like_one_rank(const Experiment& writes, const Experiment& reads);

/// Returns the setup in another type; fp16 and bf16 are mixed precision with float32.
template <class T>
Experiment in_type(Experiment setup) {
  setup.model.dtype = dtype_of<StateOf<T>>();
  setup.training.distributed.mixed_precision = std::is_same_v<T, BFloat16>  ? MixedPrecision::bf16
                                               : std::is_same_v<T, Float16> ? MixedPrecision::fp16
                                                                            : MixedPrecision::no;
  return setup;
}

template <class T>
constexpr double roundoff = std::is_same_v<T, BFloat16> ? 0x1p-8 : 0x1p-11;  // unit roundoff of T

}  // namespace tessera::train_test
