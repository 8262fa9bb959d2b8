// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/base/element_hash.hpp>
#include <tessera/base/text.hpp>
#include <tessera/data/data_row.hpp>
#include <tessera/data/sample_checksums.hpp>

namespace tessera {
namespace {

constexpr Size most_runs = 16, values_of_run = 1 << 16;

Matrix<double> make_samples(Size samples, Size positions, Size width) {
  return Matrix<double>(Kokkos::view_alloc("tessera::checked_samples", Kokkos::WithoutInitializing),
                        samples * positions, width);
}

std::uint64_t sum_of_hashes(const Matrix<double>& values) {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), values);
  std::uint64_t sum = 0;
  for (Size i = 0; i < static_cast<Size>(host.span()); ++i) sum += element_hash(host.data() + i, i);
  return sum;
}

/// `fill` makes the samples of a block.
template <class Fill>
std::string checksums_of_runs(Size samples, const ModelSpec& model, const Fill& fill) {
  const Size runs = std::min(samples, most_runs),
             longest =
                 std::max<Size>(values_of_run / (model.input_positions * model.input_width), 1);
  nlohmann::json checksums = nlohmann::json::array();
  for (Size run = 0; run < runs; ++run) {
    Range some = balanced_split(samples, runs, run);
    some.count = std::min(some.count, longest);
    const DataBlock<double> block{
        some, make_samples(some.count, model.input_positions, model.input_width),
        make_samples(some.count, model.output_positions(), model.target_width())};
    fill(block);
    checksums.push_back({sum_of_hashes(block.x), sum_of_hashes(block.y)});
  }
  return checksums.dump();
}

/// Copies rows of samples with so many positions.
template <class T>
void copy_rows(const Matrix<T>& all, const Range& samples, Size positions,
               const Matrix<double>& to) {
  const std::pair rows(samples.begin * positions, samples.end() * positions);
  Kokkos::deep_copy(to, Kokkos::subview(all, rows, Kokkos::ALL));
}

}  // namespace

std::string sample_checksums(const DataConfig& data, const ModelSpec& model) {
  const DataRow& row = row_of(data.kind);
  if (!row.reads_file && !row.reads_arrays) return "[]";
  check_files(data, model);
  DataConfig any = data;
  any.allow_nonfinite = true;  // whoever reads all of them names the first one that is not finite
  return checksums_of_runs(
      data.samples + data.validation_samples, model,
      [&](const DataBlock<double>& block) { row.fill.run(any, model, block); });
}

template <class T>
std::string sample_checksums(const Matrix<T>& x, const Matrix<T>& y, const ModelSpec& model) {
  const Size samples = static_cast<Size>(x.extent(0)) / model.input_positions;
  const auto fits = [&](const Matrix<T>& all, Size positions, Size width) {
    return static_cast<Size>(all.extent(0)) == samples * positions &&
           static_cast<Size>(all.extent(1)) == width;
  };
  if (!fits(x, model.input_positions, model.input_width) ||
      !fits(y, model.output_positions(), model.target_width()))
    return "[]";
  return checksums_of_runs(samples, model, [&](const DataBlock<double>& block) {
    copy_rows(x, block.samples, model.input_positions, block.x);
    copy_rows(y, block.samples, model.output_positions(), block.y);
  });
}
template std::string sample_checksums(const Matrix<float>&, const Matrix<float>&, const ModelSpec&);
template std::string sample_checksums(const Matrix<double>&, const Matrix<double>&,
                                      const ModelSpec&);

std::string data_files_text(const DataConfig& data) {
  std::vector<std::string> files;
  for (const auto& [key, name] : {std::pair("data.file", data.file), std::pair("data.x", data.x),
                                  std::pair("data.y", data.y)})
    if (!name.empty()) files.push_back(fmt::format("{} = {}", key, name));
  return join(files);
}

}  // namespace tessera
