// SPDX-License-Identifier: Apache-2.0
// Samples from two arrays in files: what the formats have in common.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>

#include <tessera/base/alias.hpp>
#include <tessera/base/error.hpp>
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

/// Throws ConfigError for numbers of an array that are not finite as T: `count` of them, the first
/// one in this row and column, where the array has `value`.
struct NonFinite {
  Size count = 0, row = 0, column = 0;
  double value = 0;
};
[[noreturn]] void reject_nonfinite(const StoredPart& part, const NonFinite& found, DType as,
                                   const std::string& place);

/// Reads samples in pieces, and calls f(values, range of the piece). Array: has read(samples,
/// values), which converts to T.
template <class T, class Array, class F>
void read_pieces(Array& array, const StoredPart& part, Range samples, const F& f) {
  constexpr Size piece_bytes = 1 << 22;
  const Size elements = part.elements();
  const Size at_once = std::max<Size>(1, piece_bytes / (elements * Size{sizeof(T)}));
  std::vector<T> values;
  for (Size done = 0; done < samples.count; done += at_once) {
    const Range piece{samples.begin + done, std::min(at_once, samples.count - done)};
    values.resize(piece.count * elements);
    array.read(piece, values.data());
    f(values, piece);
  }
}

/// Looks for what is not finite from the first sample on, so that every rank that has met some says
/// the same, whichever samples are its own.
template <class T, class Array>
[[noreturn]] void reject_nonfinite(const DataConfig& data, const ModelSpec& model) {
  for (const StoredPart& part : {part_x(data, model), part_y(data, model)}) {
    Array array(data, part);
    NonFinite found;
    read_pieces<T>(array, part, {0, data.samples + data.validation_samples},
                   [&](const std::vector<T>& values, Range piece) {
                     for (std::size_t i = 0; i < values.size(); ++i) {
                       if (std::isfinite(values[i]) || found.count++ > 0) continue;
                       found.row = piece.begin + static_cast<Size>(i) / part.elements();
                       found.column = static_cast<Size>(i) % part.elements();
                     }
                   });
    if (found.count == 0) continue;
    std::vector<double> sample(static_cast<std::size_t>(part.elements()));
    array.read({found.row, 1}, sample.data());
    found.value = sample[static_cast<std::size_t>(found.column)];
    reject_nonfinite(part, found, dtype_of<T>(), array.place());
  }
  throw ConfigError("data.x", data.x, "changes while it is read");
}

/// One of the two arrays, and what becomes of its samples.
template <class Array>
class StoredReader {
 public:
  StoredReader(const DataConfig& data, const ModelSpec& model, const StoredPart& part)
      : data_(data), model_(model), part_(part), array_(data, part) {}

  template <class T>
  void read(Range samples, const Matrix<T>& to) {
    read_pieces<T>(array_, part_, samples, [&](const std::vector<T>& values, Range piece) {
      if (!data_.allow_nonfinite &&
          !std::all_of(values.begin(), values.end(), [](T value) { return std::isfinite(value); }))
        reject_nonfinite<T, Array>(data_, model_);
      if (part_.classes > 0) check_classes(part_, values, piece.begin, array_.place());
      using Host = Kokkos::View<const T*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
      T* const begin = to.data() + (piece.begin - samples.begin) * part_.elements();
      Kokkos::deep_copy(Vector<T>(begin, values.size()), Host(values.data(), values.size()));
    });
  }

 private:
  const DataConfig& data_;
  const ModelSpec& model_;
  StoredPart part_;
  Array array_;
};

/// A row of the table for arrays of one format. Array: made from (data, part); has
/// shape() and place() as well, and check_size(), which rejects an array that is not all there.
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
              [](const DataConfig& data, const ModelSpec& model) {
                using Reader = StoredReader<Array>;
                return [x = Reader(data, model, part_x(data, model)),
                        y = Reader(data, model, part_y(data, model))](const auto& block) mutable {
                  x.read(block.samples, block.x);
                  y.read(block.samples, block.y);
                };
              }};
}

}  // namespace tessera
