// SPDX-License-Identifier: Apache-2.0
// Reads samples from two arrays in files, of any format.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>

#include <tessera/base/alias.hpp>
#include <tessera/base/placement.hpp>
#include <tessera/data/data_row.hpp>

namespace tessera {

/// The array of x or of y. Each sample has positions * width numbers in row-major order.
struct StoredPart {
  std::string key;   ///< "data.x"
  std::string name;  ///< value of that key
  Size positions = 1, width = 1;
  Size classes = 0;               ///< if positive, the numbers are integers below it
  std::optional<Size> ignored{};  ///< a further number that is allowed

  Size elements() const { return positions * width; }
};
StoredPart part_x(const DataConfig& data, const ModelSpec& model);
StoredPart part_y(const DataConfig& data, const ModelSpec& model);

/// Throws ConfigError for a model that does not learn from examples.
void check_learns_from_examples(const DataConfig& data, const ModelSpec& model);

/// Returns the number of samples of an array of this shape. Throws ConfigError if it does not hold
/// samples of the model. `place`, such as " in file.h5", is for messages.
SamplesOfFile samples_of_shape(const StoredPart& part, const Shape& shape,
                               const std::string& place);

/// Throws ConfigError for the first value that is no class, if the numbers are classes, or that is
/// not finite, unless the data may have such values. `values` are those of whole samples, from
/// sample `first` on.
template <class T>
void check_values(const DataConfig& data, const StoredPart& part, const std::vector<T>& values,
                  Size first, const std::string& place);

/// Reads the samples of x or y, checks them and copies them to the device. Array: is made from
/// (data, part); read(samples, values) converts to T.
template <class Array>
class StoredReader {
 public:
  StoredReader(const DataConfig& data, const StoredPart& part)
      : data_(data), part_(part), array_(data, part) {}

  template <class T>
  void read(Range samples, const Matrix<T>& to) {
    constexpr Size piece_bytes = 1 << 22;
    const Size elements = part_.elements();
    const Size at_once = std::max<Size>(1, piece_bytes / (elements * Size{sizeof(T)}));
    std::vector<T> values;
    for (Size done = 0; done < samples.count; done += at_once) {
      const Range piece{samples.begin + done, std::min(at_once, samples.count - done)};
      values.resize(piece.count * elements);
      array_.read(piece, values.data());
      check_values(data_, part_, values, piece.begin, array_.place());
      using Host = Kokkos::View<const T*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
      Kokkos::deep_copy(Vector<T>(to.data() + done * elements, values.size()),
                        Host(values.data(), values.size()));
    }
  }

 private:
  const DataConfig& data_;
  StoredPart part_;
  Array array_;
};

/// Makes the row of a format. Array also has shape(), place() for messages, and check_size(), which
/// rejects a truncated array.
template <class Array>
constexpr DataRow stored_samples(void (*check)(const DataConfig&, const ModelSpec&),
                                 bool in_one_file) {
  return {.check = check,
          .reads_file = in_one_file,
          .reads_arrays = true,
          .count_samples =
              [](const DataConfig& data, const ModelSpec& model) {
                std::vector<SamplesOfFile> counts;
                for (const StoredPart& part : {part_x(data, model), part_y(data, model)}) {
                  Array array(data, part);
                  counts.push_back(samples_of_shape(part, array.shape(), array.place()));
                  array.check_size();
                }
                return counts;
              },
          .fill =
              [](const DataConfig& data, const ModelSpec& model) {
                using Reader = StoredReader<Array>;
                return [x = Reader(data, part_x(data, model)),
                        y = Reader(data, part_y(data, model))](const auto& block) mutable {
                  x.read(block.samples, block.x);
                  y.read(block.samples, block.y);
                };
              }};
}

}  // namespace tessera
