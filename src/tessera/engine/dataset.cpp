// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <tuple>
#include <utility>

#include <tessera/base/alias.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/data/data_row.hpp>
#include <tessera/engine/dataset.hpp>
#include <tessera/plan/grains.hpp>
#include <tessera/random/permutation.hpp>

namespace tessera {
namespace {

const std::string copy_shuffled_label = "tessera::copy_shuffled";  // a step must not allocate it

void check_extent(const char* key, Size got, const char* what, Size wanted) {
  if (got != wanted)
    throw ConfigError(key, std::to_string(got),
                      std::string("must be ") + what + ", " + std::to_string(wanted));
}

constexpr std::uint32_t shuffle_stream = 0x73687566;  // differs from every stream of data

/// Copies samples to a batch. `own` are the samples' positions in the order `order` of `n` samples.
/// `positions` is the number of rows of a sample.
template <class T>
void copy_shuffled(const Matrix<T>& all, const Matrix<T>& batch, Size positions, Range own, Size n,
                   Key order) {
  const Size elements = positions * static_cast<Size>(all.extent(1));
  const T* const from = all.data();
  T* const to = batch.data();
  for_each(
      copy_shuffled_label, own.count,
      KOKKOS_LAMBDA(Size i) {
        const T* const sample = from + permuted(order, n, own.begin + i) * elements;
        for (Size j = 0; j < elements; ++j) to[i * elements + j] = sample[j];
      },
      own.count * elements);
}

}  // namespace

template <class T>
Dataset<T>::Dataset(const Plan& plan, Size rank, Size samples)
    : input_(plan.input),
      rank_(rank),
      samples_(samples),
      batch_size_(plan.input.batch_size),
      x_positions_(plan.input.model.input_positions),
      y_positions_(plan.input.model.output_positions()) {}

template <class T>
Dataset<T> Dataset<T>::wrap(const Plan& plan, Size rank, const Matrix<T>& x, const Matrix<T>& y) {
  const ModelSpec& model = plan.input.model;
  Dataset data(plan, rank, plan.input.samples);
  check_extent("rows of x", x.extent(0), "the rows of the planned samples",
               plan.input.samples * data.x_positions_);
  check_extent("rows of y", y.extent(0), "the rows of the planned samples",
               plan.input.samples * data.y_positions_);
  check_extent("columns of x", x.extent(1), "the model's input width", model.input_width);
  check_extent("columns of y", y.extent(1), "the width of the model's targets",
               model.target_width());
  data.x_ = x;
  data.y_ = y;
  return data;
}

template <class T>
Dataset<T> Dataset<T>::generate(const Plan& plan, Size rank, const DataConfig& config) {
  row_of(config.kind).check_files(config, plan.input.model);
  return made(plan, rank, config, {0, plan.input.samples}, plan.input.shuffles);
}

template <class T>
Dataset<T> Dataset<T>::validation(const Plan& plan, Size rank, const DataConfig& config) {
  return made(plan, rank, config, {plan.input.samples, plan.input.validation_samples}, false);
}

template <class T>
Dataset<T> Dataset<T>::made(const Plan& plan, Size rank, const DataConfig& config, Range numbers,
                            bool shuffles) {
  const ModelSpec& model = plan.input.model;
  Dataset data(plan, rank, numbers.count);
  const auto allocate = [&](const char* x, const char* y, Size samples) {
    return std::pair{allocate_matrix<T>(x, samples * data.x_positions_, model.input_width),
                     allocate_matrix<T>(y, samples * data.y_positions_, model.target_width())};
  };
  data.compact_ = !shuffles;
  std::tie(data.x_, data.y_) =
      allocate("tessera::x", "tessera::y",
               shuffles ? numbers.count : plan.data_samples(rank, numbers.count));
  data.fill(config, model, numbers.begin);
  if (!shuffles) return data;
  data.shuffle_ = fold_in(key(config.seed), shuffle_stream);
  std::tie(data.batch_x_, data.batch_y_) =
      allocate("tessera::batch_x", "tessera::batch_y", plan.batch_samples(rank).count);
  return data;
}

/// Makes the samples. `first` is the number of the first sample of the data set.
template <class T>
void Dataset<T>::fill(const DataConfig& config, const ModelSpec& model, Size first) {
  Blocks<T> blocks;
  const auto add_rows = [&](Range samples, Size number) {
    const auto own = [&](const Matrix<T>& all, Size positions) {
      return rows_of(all, {samples.begin * positions, samples.count * positions});
    };
    blocks.push_back({{number, samples.count}, own(x_, x_positions_), own(y_, y_positions_)});
  };
  if (!compact_) add_rows({0, samples_}, first);
  Size done = 0;
  for (Size k = 0; compact_ && k < num_batches(); ++k) {
    const Range share = batch_share(input_, batch_samples(k), rank_);
    add_rows({done, share.count}, first + k * batch_size_ + share.begin);
    done += share.count;
  }
  row_of(config.kind).fill.run(config, model, blocks);
}

template <class T>
Size Dataset<T>::batch_samples(Size k) const {
  const Size left = samples_ - k * batch_size_;
  return left < batch_size_ ? left : batch_size_;
}

template <class T>
Batch<T> Dataset<T>::batch(Size k, Size epoch) const {
  const Size samples = batch_samples(k);
  const Range share = batch_share(input_, samples, rank_);
  const Size full_share = batch_share(input_, batch_size_, rank_).count;
  const Size begin = compact_ ? k * full_share : k * batch_size_ + share.begin;
  const auto rows = [&](Size first, Size positions) {
    return Range{first * positions, share.count * positions};
  };
  const auto of = [&](const Matrix<T>& x, const Matrix<T>& y, Size first) {
    return Batch<T>{rows_of(x, rows(first, x_positions_)), rows_of(y, rows(first, y_positions_)),
                    share.count, share.begin, samples};
  };
  if (!shuffle_) return of(x_, y_, begin);
  const Key order = fold_in(*shuffle_, static_cast<std::uint32_t>(epoch));
  copy_shuffled(x_, batch_x_, x_positions_, {begin, share.count}, samples_, order);
  copy_shuffled(y_, batch_y_, y_positions_, {begin, share.count}, samples_, order);
  return of(batch_x_, batch_y_, 0);
}

template class Dataset<float>;
template class Dataset<double>;

}  // namespace tessera
