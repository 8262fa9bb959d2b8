// SPDX-License-Identifier: Apache-2.0
// Samples from arrays that NumPy saved: one file for x, one for y.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include <tessera/base/half_float.hpp>
#include <tessera/base/text.hpp>
#include <tessera/data/data_file.hpp>
#include <tessera/data/stored_samples.hpp>
#include <tessera/io/npy_header.hpp>

namespace tessera {
namespace {

/// Byte order of elements, compared with this machine.
enum class ByteOrder : std::uint8_t { native, swapped };

/// Converts `count` elements and stores them `stride` apart.
template <class Stored, class T>
void convert_elements(const unsigned char* bytes, Size count, ByteOrder order, T* values,
                      Size stride) {
  for (Size i = 0; i < count; ++i) {
    std::array<unsigned char, sizeof(Stored)> element;
    std::memcpy(element.data(), bytes + i * Size{sizeof(Stored)}, sizeof(Stored));
    if (order == ByteOrder::swapped) std::reverse(element.begin(), element.end());
    values[i * stride] = static_cast<T>(std::bit_cast<Stored>(element));
  }
}

/// An element type, and functions that convert it.
struct NpyType {
  std::string_view name;  ///< without the order of bytes: "f4"
  Size bytes;
  void (*to_float)(const unsigned char*, Size, ByteOrder, float*, Size);
  void (*to_double)(const unsigned char*, Size, ByteOrder, double*, Size);
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

/// Returns the type with this name, which begins with the byte order: "<f4", ">f4", "|u1". Returns
/// null if there is none.
const NpyType* find_type(std::string_view name) {
  if (name.empty()) return nullptr;
  const auto type = std::find_if(npy_types.begin(), npy_types.end(), [&](const NpyType& known) {
    return known.name == name.substr(1);
  });
  if (type == npy_types.end()) return nullptr;
  return name[0] == '<' || name[0] == '>' || (name[0] == '|' && type->bytes == 1) ? type : nullptr;
}

/// Returns the index in Fortran order of a number whose index in its sample is `place` in C order.
Size fortran_place(Size place, const Shape& shape) {
  Size fortran = 0;
  for (std::size_t d = shape.size() - 1; d > 0; --d) {
    fortran = fortran * shape[d] + place % shape[d];
    place /= shape[d];
  }
  return fortran;
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
    type_ = find_type(header_.type);
    if (type_ == nullptr) {
      std::vector<std::string_view> known;
      for (const NpyType& type : npy_types) known.push_back(type.name);
      file_.reject(fmt::format("has element type {}, but must have one of {}, of either byte order",
                               one_line(header_.type), join(known)));
    }
    const bool is_big = header_.type[0] == '>', is_here = std::endian::native == std::endian::big;
    if (is_big != is_here && type_->bytes > 1) order_ = ByteOrder::swapped;
  }

  const Shape& shape() const { return header_.shape; }
  std::string place() const { return ""; }

  /// Rejects a truncated file. The shape must have been checked.
  void check_size() const {
    const Size found = (file_.bytes() - header_.bytes) / type_->bytes;
    const Size whole = found / elements_;  // a quotient, because the product may overflow
    if (whole >= shape()[0]) return;
    file_.reject(is_by_column()
                     ? fmt::format("is truncated after {} numbers", found)
                     : fmt::format("is truncated after {} of its {} samples", whole, shape()[0]));
  }

  void read(Range samples, float* values) { read(samples, values, type_->to_float); }
  void read(Range samples, double* values) { read(samples, values, type_->to_double); }

 private:
  /// Returns true if a sample's numbers are not contiguous.
  bool is_by_column() const { return header_.is_fortran_order && elements_ > 1; }

  template <class T>
  using Convert = void (*)(const unsigned char*, Size, ByteOrder, T*, Size);

  template <class T>
  void read(Range samples, T* values, Convert<T> convert) {
    if (!is_by_column())
      return read(samples.begin * elements_, samples.count * elements_, values, 1, convert);
    for (Size place = 0; place < elements_; ++place)
      read(fortran_place(place, shape()) * shape()[0] + samples.begin, samples.count,
           values + place, elements_, convert);
  }

  /// Reads numbers that are contiguous in the file.
  template <class T>
  void read(Size begin, Size count, T* values, Size stride, Convert<T> convert) {
    const std::vector<unsigned char> bytes =
        file_.read(header_.bytes + begin * type_->bytes, count * type_->bytes);
    convert(bytes.data(), count, order_, values, stride);
  }

  DataFile file_;
  Size elements_;  ///< numbers per sample
  NpyHeader header_;
  const NpyType* type_ = nullptr;
  ByteOrder order_ = ByteOrder::native;
};

}  // namespace

const DataRow npy_data = stored_samples<NpyArray>(check_learns_from_examples, false);

}  // namespace tessera
