// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <fmt/format.h>

#include <tessera/data/data_fields.hpp>
#include <tessera/data/data_row.hpp>

namespace tessera {
namespace {

using C = DataConfig;

/// The rule of a key that names a file or an array, for the kinds of data that read one.
Rule<C> read_by(bool DataRow::*is_read, std::string C::*name, const char* what) {
  return {[=](const C& data) -> std::string {
            const bool is_needed = row_of(data.kind).*is_read;
            if (is_needed != (data.*name).empty()) return "";
            return fmt::format("must {} for data.kind = \"{}\"", is_needed ? what : "not be set",
                               name_of(data.kind));
          },
          When::always};
}

std::string allowed_nonfinite(const C& data) {
  if (row_of(data.kind).reads_arrays) return "";
  return fmt::format("must not be set for data.kind = \"{}\"", name_of(data.kind));
}

/// A number, or "all" of a file.
Field<C> samples_field() {
  Field<C> field{"data.samples",
                 &C::samples,
                 "samples in the data set; all: those of the files, less the validation ones",
                 positive,
                 Tier::common,
                 fixed};
  field.type = "an integer or \"all\"";
  field.set = [set_number = field.set](C& data, const nlohmann::json& value) {
    if (value.is_string() && value != "all")
      reject("data.samples", value, "must be an integer or \"all\"");
    if (value.is_string()) {
      data.samples = every_sample;
    } else {
      set_number(data, value);
      if (data.samples == every_sample) check_bounds("data.samples", value, positive);
    }
  };
  field.get = [](const C& data) {
    return data.samples == every_sample ? nlohmann::json("all") : nlohmann::json(data.samples);
  };
  return field;
}

}  // namespace

const Fields<DataConfig>& data_fields() {
  static const Fields<C> fields{
      {"data.kind", &C::kind, "generator or file format of the samples", Tier::common, fixed},
      samples_field(),
      {"data.seed", &C::seed, "seed of the data set", a_seed, fixed},
      {"data.file", &C::file, "file to read samples from; bytes, idx, hdf5", Tier::common, fixed,
       read_by(&DataRow::reads_file, &C::file, "name a file")},
      {"data.x", &C::x, "array of the inputs: a file for npy, a name in data.file for hdf5", fixed,
       read_by(&DataRow::reads_arrays, &C::x, "name an array")},
      {"data.y", &C::y, "array of the targets, likewise", fixed,
       read_by(&DataRow::reads_arrays, &C::y, "name an array")},
      {"data.allow_nonfinite", &C::allow_nonfinite,
       "train on NaN and infinity in these arrays, instead of rejecting them",
       Rule<C>{allowed_nonfinite, When::set}},
      {"data.shuffle", &C::shuffle, "visit the samples in a new random order in each epoch", fixed},
      {"data.validation_samples", &C::validation_samples,
       "unseen samples whose loss is computed between epochs; 0: none", not_negative, Tier::common,
       fixed},
  };
  return fields;
}

}  // namespace tessera
