// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/data/stored_samples.hpp>

namespace tessera {
namespace {

/// Whether the dimensions behind the first hold `elements` numbers together.
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
  return {"data.x", data.x, model.input_positions, model.input_width, model.classes};
}

StoredPart part_y(const DataConfig& data, const ModelSpec& model) {
  const Size classes = model.targets == Targets::classes ? model.output_width() : 0;
  return {"data.y", data.y, model.output_positions(), model.target_width(), classes};
}

void check_learns_from_examples(const DataConfig& data, const ModelSpec& model) {
  if (model.targets == Targets::residuals)
    reject_data_kind(data, "a model that learns from examples, unlike model.kind = \"pinn\"");
}

void check_stored_shape(const StoredPart& part, const Shape& shape, Size samples,
                        const std::string& place) {
  const auto reject = [&](const std::string& reason) {
    throw ConfigError(part.key, part.name, "has shape ({}){}, but {}", fmt::join(shape, ", "),
                      place, reason);
  };
  if (shape.empty() || !holds(shape, part.elements()))
    reject(fmt::format(
        "the model needs (samples, {}){}",
        part.positions > 1 ? fmt::format("{}, {}", part.positions, part.width)
                           : std::to_string(part.width),
        part.elements() > 1
            ? fmt::format(" or another shape with {} numbers per sample", part.elements())
            : ""));
  if (shape[0] < samples) reject(fmt::format("{} samples are needed", samples));
}

void reject_nonfinite(const StoredPart& part, const NonFinite& found, DType as,
                      const std::string& place) {
  throw ConfigError(part.key, part.name,
                    "has {}{} {} not finite in {}: the first, {}, is in row {}, column {}, counted "
                    "from 0; data.allow_nonfinite = true trains on them",
                    counted(found.count, "number"), place,
                    found.count == 1 ? "that is" : "that are", name_of(as), found.value, found.row,
                    found.column);
}

template <class T>
void check_classes(const StoredPart& part, const std::vector<T>& values, Size first,
                   const std::string& place) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value = values[i];
    if (value >= T(0) && value < static_cast<T>(part.classes) && value == std::floor(value))
      continue;
    throw ConfigError(part.key, part.name,
                      "has {} in sample {}{}, but the model needs integers from 0 to {}", value,
                      first + static_cast<Size>(i) / part.elements(), place, part.classes - 1);
  }
}
template void check_classes(const StoredPart&, const std::vector<float>&, Size, const std::string&);
template void check_classes(const StoredPart&, const std::vector<double>&, Size,
                            const std::string&);

}  // namespace tessera
