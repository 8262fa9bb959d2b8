// SPDX-License-Identifier: Apache-2.0
// Samples from arrays that NumPy saved: one file for x, one for y.
#include <array>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include <tessera/base/short_float.hpp>
#include <tessera/base/text.hpp>
#include <tessera/data/data_file.hpp>
#include <tessera/data/stored_samples.hpp>
#include <tessera/io/npy_header.hpp>

namespace tessera {
namespace {

template <class Stored, class T>
void convert_elements(const unsigned char* bytes, Size count, T* values) {
  for (Size i = 0; i < count; ++i) {
    Stored value;
    std::memcpy(&value, bytes + i * Size{sizeof value}, sizeof value);
    values[i] = static_cast<T>(value);
  }
}

/// A type of elements that can be read, and how.
struct NpyType {
  std::string_view name;  ///< without the order of bytes: "f4"
  Size bytes;
  void (*to_float)(const unsigned char*, Size, float*);
  void (*to_double)(const unsigned char*, Size, double*);
};

template <class Stored>
constexpr NpyType npy_type(std::string_view name) {
  return {name, sizeof(Stored), convert_elements<Stored, float>, convert_elements<Stored, double>};
}

constexpr std::array npy_types{
    npy_type<std::uint8_t>("b1"),  npy_type<std::int8_t>("i1"),   npy_type<std::uint8_t>("u1"),
    npy_type<std::int16_t>("i2"),  npy_type<std::uint16_t>("u2"), npy_type<std::int32_t>("i4"),
    npy_type<std::uint32_t>("u4"), npy_type<std::int64_t>("i8"),  npy_type<std::uint64_t>("u8"),
    npy_type<Float16>("f2"),       npy_type<float>("f4"),         npy_type<double>("f8")};

/// With the order of bytes in front: "<f4", "|u1".
std::string full_name(const NpyType& type) {
  const char native = std::endian::native == std::endian::little ? '<' : '>';
  return fmt::format("{}{}", type.bytes == 1 ? '|' : native, type.name);
}

class NpyArray {
 public:
  NpyArray(const DataConfig&, const StoredPart& part)
      : file_(part.key, part.name), elements_(part.elements()) {
    const std::vector<unsigned char> start =
        file_.read(0, std::min(file_.bytes(), longest_npy_header));
    const auto header =
        parse_npy_header({reinterpret_cast<const char*>(start.data()), start.size()});
    if (!header) file_.reject("is not a NumPy array file: it does not begin with the .npy header");
    header_ = *header;
    if (header_.is_fortran_order && header_.shape.size() > 1)
      file_.reject(
          "is in Fortran order, but must be in C order; save numpy.ascontiguousarray(array)");
    for (const NpyType& type : npy_types)
      if (full_name(type) == header_.type) type_ = &type;
    if (type_ != nullptr) return;
    std::vector<std::string> known;
    for (const NpyType& type : npy_types) known.push_back(full_name(type));
    file_.reject(fmt::format("has element type {}, but must have one of {}", one_line(header_.type),
                             join(known)));
  }

  const Shape& shape() const { return header_.shape; }
  std::string place() const { return ""; }

  /// Of a shape that has been checked.
  void check_size() const {
    const Size whole = (file_.bytes() - header_.bytes) / (elements_ * type_->bytes);
    if (whole < shape()[0])
      file_.reject(fmt::format("is truncated after {} of its {} samples", whole, shape()[0]));
  }

  void read(Range samples, float* values) { read(samples, values, type_->to_float); }
  void read(Range samples, double* values) { read(samples, values, type_->to_double); }

 private:
  template <class T>
  void read(Range samples, T* values, void (*convert)(const unsigned char*, Size, T*)) {
    const Size sample_bytes = elements_ * type_->bytes;
    const std::vector<unsigned char> bytes =
        file_.read(header_.bytes + samples.begin * sample_bytes, samples.count * sample_bytes);
    convert(bytes.data(), samples.count * elements_, values);
  }

  DataFile file_;
  Size elements_;  ///< of a sample
  NpyHeader header_;
  const NpyType* type_ = nullptr;
};

}  // namespace

const DataRow npy_data = stored_samples<NpyArray>(check_learns_from_examples, false);

}  // namespace tessera
