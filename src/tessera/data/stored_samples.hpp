// SPDX-License-Identifier: Apache-2.0
// Samples from two arrays in files: what the formats have in common.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>

#include <tessera/base/alias.hpp>
#include <tessera/base/placement.hpp>
#include <tessera/data/data_row.hpp>

namespace tessera {

/// What the model wants of x or y: for each sample, (positions, width) numbers in row-major order,
/// in any shape.
struct StoredPart {
  std::string key;   ///< "data.x"
  std::string name;  ///< what that is set to
  Size positions = 1, width = 1;
  Size classes = 0;  ///< integers below it, if it is positive

  Size elements() const { return positions * width; }
};
StoredPart part_x(const DataConfig& data, const ModelSpec& model);
StoredPart part_y(const DataConfig& data, const ModelSpec& model);

/// Throws ConfigError for a model that does not learn from examples.
void check_learns_from_examples(const DataConfig& data, const ModelSpec& model);

/// Throws ConfigError unless an array of this shape has `samples` such samples. `place`: " in
/// file.h5", for messages.
void check_stored_shape(const StoredPart& part, const Shape& shape, Size samples,
                        const std::string& place);

/// Throws ConfigError for a value that is no class. `values`: of whole samples, from `first` on.
template <class T>
void check_classes(const StoredPart& part, const std::vector<T>& values, Size first,
                   const std::string& place);

/// Reads samples into `to` piece by piece. Array: has place(), and read(samples, values), which
/// converts to T.
template <class Array, class T>
void read_samples(Array array, const StoredPart& part, Range samples, const Matrix<T>& to) {
  constexpr Size piece_bytes = 1 << 22;
  const Size elements = part.elements();
  const Size at_once = std::max<Size>(1, piece_bytes / (elements * Size{sizeof(T)}));
  std::vector<T> values;
  for (Size done = 0; done < samples.count; done += at_once) {
    const Range piece{samples.begin + done, std::min(at_once, samples.count - done)};
    values.resize(piece.count * elements);
    array.read(piece, values.data());
    if (part.classes > 0) check_classes(part, values, piece.begin, array.place());
    using Host = Kokkos::View<const T*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
    Kokkos::deep_copy(Vector<T>(to.data() + done * elements, values.size()),
                      Host(values.data(), values.size()));
  }
}

/// A row of the table for arrays of one format. Array: made from (data, part); has shape() as well,
/// and check_size(), which rejects an array that is not all there.
template <class Array>
constexpr DataRow stored_samples(void (*check)(const DataConfig&, const ModelSpec&),
                                 bool in_one_file) {
  return {.check = check,
          .reads_file = in_one_file,
          .reads_arrays = true,
          .check_files =
              [](const DataConfig& data, const ModelSpec& model) {
                for (const StoredPart& part : {part_x(data, model), part_y(data, model)}) {
                  Array array(data, part);
                  check_stored_shape(part, array.shape(), data.samples + data.validation_samples,
                                     array.place());
                  array.check_size();
                }
              },
          .fill =
              [](const DataConfig& data, const ModelSpec& model, const auto& block) {
                if (block.samples.count == 0) return;
                const StoredPart x = part_x(data, model), y = part_y(data, model);
                read_samples(Array(data, x), x, block.samples, block.x);
                read_samples(Array(data, y), y, block.samples, block.y);
              }};
}

}  // namespace tessera
