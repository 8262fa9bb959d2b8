// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <tessera/base/for_each.hpp>
#include <tessera/data/data_row.hpp>
#include <tessera/random/threefry.hpp>

namespace tessera {
namespace {

/// Returns the length of the drawn first half. A sequence has one element more than the model has
/// positions, because each position predicts the next element.
Size drawn_elements(const ModelSpec& model) { return (model.input_positions + 2) / 2; }

void check_copy_task(const DataConfig& data, const ModelSpec& model) {
  if (model.targets != Targets::classes || model.classes == 0)
    reject_data_kind(data, "a sequence model, such as model.kind = \"transformer\"");
}

template <class T>
void fill_copy_task(const DataConfig& data, const ModelSpec& model, const DataBlock<T>& block) {
  const Key drawn = key(data.seed);
  const Size positions = model.input_positions, half = drawn_elements(model);
  const Size classes = model.classes, begin = block.samples.begin;
  T *const x = block.x.data(), *const y = block.y.data();
  for_each(
      "tessera::copy_task", block.samples.count * positions, KOKKOS_LAMBDA(Size i) {
        const Size sample = begin + i / positions, place = i % positions;
        const auto element = [=](Size at) {
          const auto index = static_cast<std::uint64_t>(sample * half + at % half);
          return static_cast<T>(random_bits(drawn, index) % classes);
        };
        x[i] = element(place);
        y[i] = element(place + 1);
      });
}

/// Only drawn elements have entropy, log(classes) each, and the first one is not a target.
std::optional<double> best_copy_loss(const ModelSpec& model) {
  const double unknown = static_cast<double>(drawn_elements(model) - 1);
  return unknown / static_cast<double>(model.input_positions) *
         std::log(static_cast<double>(model.classes));
}

}  // namespace

const DataRow copy_task_data{.check = check_copy_task,
                             .fill = [](const auto&... block) { fill_copy_task(block...); },
                             .best_loss = best_copy_loss};

}  // namespace tessera
