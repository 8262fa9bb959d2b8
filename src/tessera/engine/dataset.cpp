// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include <tessera/base/alias.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/data/data_row.hpp>
#include <tessera/engine/dataset.hpp>
#include <tessera/nn/rows.hpp>
#include <tessera/plan/grains.hpp>
#include <tessera/random/permutation.hpp>

namespace tessera {
namespace {

void check_extent(const char* key, Size got, const char* what, Size wanted) {
  if (got != wanted)
    throw ConfigError(key, std::to_string(got),
                      std::string("must be ") + what + ", " + std::to_string(wanted));
}

constexpr std::uint32_t shuffle_stream = 0x73687566;  // differs from every stream of data

/// Samples to copy: those with the numbers `own` or, if they are shuffled, those that are there in
/// the `order` of all `n`.
struct CopiedSamples {
  Range own;
  Size n;
  bool shuffles;
  Key order;
};

/// Copies positions of some samples to a batch: a first and a second run of its `positions` rows.
template <class T>
void copy_samples(const Matrix<T>& all, const Matrix<T>& batch, Size positions,
                  const CopiedSamples& samples, Range first, Range second) {
  const Size columns = static_cast<Size>(all.extent(1)), in_first = first.count * columns,
             in_second = second.count * columns;
  const T* const from = all.data();
  T* const to = batch.data();
  for_rows(
      "tessera::copy_samples"_label, samples.own.count, in_first + in_second,
      KOKKOS_LAMBDA(const Row& row) {
        const Size in_order = samples.own.begin + row.number;
        const Size number =
            samples.shuffles ? permuted(samples.order, samples.n, in_order) : in_order;
        const T* const sample = from + number * positions * columns;
        T* const out = to + row.number * (in_first + in_second);
        const T *const run = sample + first.begin * columns, *const rest =
                                                                 sample + second.begin * columns;
        row.for_each(in_first, [=](Size j) { out[j] = run[j]; });
        row.for_each(in_second, [=](Size j) { out[in_first + j] = rest[j]; });
      });
}

}  // namespace

template <class T>
Dataset<T>::Dataset(const Plan& plan, Size rank, Size samples)
    : input_(plan.input),
      rank_(rank),
      samples_(samples),
      batch_size_(plan.input.batch_size),
      full_share_(batch_share(plan.input, plan.input.batch_size, rank)),
      x_positions_(plan.input.model.input_positions),
      y_positions_(plan.input.model.output_positions()),
      share_(plan.input.context_share(x_positions_, rank)) {}

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
  if (data.share_.parts > 1) data.allocate_batch(plan);
  return data;
}

template <class T>
Dataset<T> Dataset<T>::generate(const Plan& plan, Size rank, const DataConfig& config) {
  check_files(config, plan.input.model);
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
  data.compact_ = !shuffles;
  const Size samples = shuffles ? numbers.count : plan.data_samples(rank, numbers.count);
  data.x_ = allocate_matrix<T>("tessera::x", samples * data.x_positions_, model.input_width);
  data.y_ = allocate_matrix<T>("tessera::y", samples * data.y_positions_, model.target_width());
  data.fill(config, model, numbers.begin);
  if (shuffles) data.shuffle_ = fold_in(key(config.seed), shuffle_stream);
  if (shuffles || data.share_.parts > 1) data.allocate_batch(plan);
  return data;
}

template <class T>
void Dataset<T>::allocate_batch(const Plan& plan) {
  const Size samples = plan.batch_samples(rank_).count;
  const auto rows = [&](Size positions) {
    return samples * (share_.parts > 1 ? share_.own_count() : positions);
  };
  batch_x_ = allocate_matrix<T>("tessera::batch_x", rows(x_positions_), x_.extent(1));
  batch_y_ = allocate_matrix<T>("tessera::batch_y", rows(y_positions_), y_.extent(1));
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
  const Range share = samples == batch_size_ ? full_share_ : batch_share(input_, samples, rank_);
  const Size begin = compact_ ? k * full_share_.count : k * batch_size_ + share.begin;
  const bool is_split = share_.parts > 1;
  const auto of = [&](const Matrix<T>& x, const Matrix<T>& y, Size first, bool is_copy) {
    const auto rows = [&](const Matrix<T>& all, Size positions) {
      if (is_copy && is_split) positions = share_.own_count();
      return rows_of(all, {first * positions, share.count * positions});
    };
    return Batch<T>{rows(x, x_positions_), rows(y, y_positions_), share.count, share.begin,
                    samples};
  };
  if (!shuffle_ && !is_split) return of(x_, y_, begin, false);
  const CopiedSamples copied{
      {begin, share.count},
      samples_,
      shuffle_.has_value(),
      shuffle_ ? fold_in(*shuffle_, static_cast<std::uint32_t>(epoch)) : Key{}};
  const auto copy = [&](const Matrix<T>& all, const Matrix<T>& to, Size positions) {
    copy_samples(all, to, positions, copied, is_split ? share_.own_run(0) : Range{0, positions},
                 is_split ? share_.own_run(1) : Range{});
  };
  copy(x_, batch_x_, x_positions_);
  copy(y_, batch_y_, y_positions_);
  return of(batch_x_, batch_y_, 0, true);
}

template class Dataset<float>;
template class Dataset<double>;

}  // namespace tessera
