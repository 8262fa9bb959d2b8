// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/data/stored_samples.hpp>

namespace tessera {
namespace {

/// Returns true if the dimensions after the first have `elements` numbers.
bool holds(const Shape& shape, Size elements) {
  Size product = 1;
  for (std::size_t d = 1; d < shape.size(); ++d) {
    if (shape[d] < 1 || shape[d] > elements / product) return false;
    product *= shape[d];
  }
  return product == elements;
}

}  // namespace

StoredPart part_x(const DataConfig& data, const ModelSpec& model) {
  return {"data.x", data.x, model.input_positions, model.input_width, model.classes, {}};
}

StoredPart part_y(const DataConfig& data, const ModelSpec& model) {
  const Size classes = model.targets == Targets::classes ? model.output_width() : 0;
  return {"data.y",          data.y, model.output_positions(), model.target_width(), classes,
          model.ignore_index};
}

void check_learns_from_examples(const DataConfig& data, const ModelSpec& model) {
  if (model.targets == Targets::residuals)
    reject_data_kind(data, "a model that learns from examples, unlike model.kind = \"pinn\"");
}

SamplesOfFile samples_of_shape(const StoredPart& part, const Shape& shape,
                               const std::string& place) {
  const std::string what = fmt::format("has shape ({}){}", fmt::join(shape, ", "), place);
  if (shape.empty() || !holds(shape, part.elements()))
    throw ConfigError(
        part.key, part.name, "{}, but the model needs (samples, {}){}", what,
        part.positions > 1 ? fmt::format("{}, {}", part.positions, part.width)
                           : std::to_string(part.width),
        part.elements() > 1
            ? fmt::format(" or another shape with {} numbers per sample", part.elements())
            : "");
  return {part.key, part.name, what, shape[0]};
}

template <class T>
void check_values(const DataConfig& data, const StoredPart& part, const std::vector<T>& values,
                  Size first, const std::string& place) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value = values[i];
    const auto sample = [&] { return first + static_cast<Size>(i) / part.elements(); };
    if (!data.allow_nonfinite && !std::isfinite(value))
      throw ConfigError(part.key, part.name,
                        "has {} in row {}, column {}{}, counted from 0, which is not finite in {}; "
                        "data.allow_nonfinite = true trains on it",
                        value, sample(), static_cast<Size>(i) % part.elements(), place,
                        name_of(dtype_of<T>()));
    if (part.classes == 0 || (part.ignored && value == static_cast<T>(*part.ignored))) continue;
    if (value < T(0) || value >= static_cast<T>(part.classes) || value != std::floor(value))
      throw ConfigError(part.key, part.name,
                        "has {} in sample {}{}, but the model needs integers from 0 to {}", value,
                        sample(), place, part.classes - 1);
  }
}
template void check_values(const DataConfig&, const StoredPart&, const std::vector<float>&, Size,
                           const std::string&);
template void check_values(const DataConfig&, const StoredPart&, const std::vector<double>&, Size,
                           const std::string&);

}  // namespace tessera
