// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/for_each.hpp>
#include <tessera/data/data_row.hpp>
#include <tessera/random/fill.hpp>

namespace tessera {
namespace {

/// Fills with integers below `classes`, each a function of its index in the data set.
template <class T>
void fill_classes(const Matrix<T>& values, Key key, Size first_row, Size classes) {
  const Size columns = static_cast<Size>(values.extent(1)), first = first_row * columns;
  T* const data = values.data();
  for_each(
      "tessera::random_classes", values.span(), KOKKOS_LAMBDA(Size i) {
        data[i] = static_cast<T>(random_bits(key, static_cast<std::uint64_t>(first + i)) % classes);
      });
}

template <class T>
void fill_either(const Matrix<T>& values, Key key, Size first_row, Size classes) {
  if (classes > 0)
    fill_classes(values, key, first_row, classes);
  else
    fill_normal(values, key, first_row);
}

template <class T>
void fill_random(const DataConfig& data, const ModelSpec& model, const DataBlock<T>& block) {
  const Key key_x = key(data.seed), key_y = fold_in(key_x, 1);
  const Size begin = block.samples.begin;
  fill_either(block.x, key_x, begin * model.input_positions, model.classes);
  fill_either(block.y, key_y, begin * model.output_positions(),
              model.targets == Targets::classes ? model.output_width() : 0);
}

}  // namespace

const DataRow random_data{.check = [](const DataConfig&, const ModelSpec&) {},
                          .fill = [](const auto&... block) { fill_random(block...); }};

}  // namespace tessera
