// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <tessera/base/alias.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/engine/dataset.hpp>
#include <tessera/random/fill.hpp>
#include <tessera/random/threefry.hpp>

namespace tessera {
namespace {

template <class T>
void sum_of_squares_by_row(const Matrix<T>& x, const Matrix<T>& y) {
  const Size columns = static_cast<Size>(x.extent(1));
  for_each(
      "tessera::sum_of_squares_by_row", x.extent(0), KOKKOS_LAMBDA(Size i) {
        T sum = 0;
        for (Size j = 0; j < columns; ++j) sum += x(i, j) * x(i, j);
        y(i, 0) = sum;
      });
}

void check_extent(const char* key, Size got, const char* what, Size wanted) {
  if (got != wanted)
    throw ConfigError(key, std::to_string(got),
                      std::string("must be ") + what + ", " + std::to_string(wanted));
}

}  // namespace

template <class T>
Dataset<T>::Dataset(const Plan& plan, Size rank)
    : mesh_(plan.input.mesh),
      rank_(rank),
      samples_(plan.input.samples),
      batch_size_(plan.input.global_batch) {}

template <class T>
Dataset<T> Dataset<T>::wrap(const Plan& plan, Size rank, const Matrix<T>& x, const Matrix<T>& y) {
  const ModelSpec& model = plan.input.model;
  check_extent("rows of x", x.extent(0), "the planned samples", plan.input.samples);
  check_extent("rows of y", y.extent(0), "those of x", x.extent(0));
  check_extent("columns of x", x.extent(1), "the model's input width", model.input_width);
  check_extent("columns of y", y.extent(1), "the model's output width", model.output_width());
  Dataset data(plan, rank);
  data.x_ = x;
  data.y_ = y;
  return data;
}

template <class T>
Dataset<T> Dataset<T>::generate(const Plan& plan, Size rank, const DataConfig& config) {
  Dataset data(plan, rank);
  data.compact_ = true;
  const Size rows = plan.data_rows(rank);
  data.x_ = allocate_matrix<T>("tessera::x", rows, plan.input.model.input_width);
  data.y_ = allocate_matrix<T>("tessera::y", rows, plan.input.model.output_width());

  const Key key_x = key(config.seed);
  const Key key_y = fold_in(key_x, 1);
  Size local = 0;
  for (Size k = 0; k < data.num_batches(); ++k) {
    const Range share = batch_share(data.mesh_, data.batch_rows(k), rank);
    const GlobalBlock block{k * data.batch_size_ + share.begin};
    fill_normal(rows_of(data.x_, {local, share.count}), key_x, block);
    if (config.kind == DataKind::random)
      fill_normal(rows_of(data.y_, {local, share.count}), key_y, block);
    local += share.count;
  }
  if (config.kind == DataKind::sum_of_squares) sum_of_squares_by_row(data.x_, data.y_);
  return data;
}

template <class T>
Size Dataset<T>::batch_rows(Size k) const {
  const Size left = samples_ - k * batch_size_;
  return left < batch_size_ ? left : batch_size_;
}

template <class T>
Batch<T> Dataset<T>::batch(Size k) const {
  const Size rows = batch_rows(k);
  const Range share = batch_share(mesh_, rows, rank_);
  const Size full_share = batch_share(mesh_, batch_size_, rank_).count;
  const Size begin = compact_ ? k * full_share : k * batch_size_ + share.begin;
  return {rows_of(x_, {begin, share.count}), rows_of(y_, {begin, share.count}), rows};
}

template class Dataset<float>;
template class Dataset<double>;

}  // namespace tessera
