// SPDX-License-Identifier: Apache-2.0
// The only file that includes <hdf5.h>.
#include <array>
#include <cstdlib>
#include <hdf5.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/io/hdf5_array.hpp>
#include <tessera/io/whole_file.hpp>

namespace tessera {
namespace {

constexpr std::size_t most_dimensions = 8;

/// Owns an object of HDF5.
class Handle {
 public:
  Handle() = default;
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }

 private:
  hid_t id_ = H5I_INVALID_HID;
  herr_t (*close_)(hid_t) = nullptr;
};

/// Returns HDF5's description of the first error.
std::string reason() {
  std::string text;
  const auto first = [](unsigned number, const H5E_error2_t* error, void* out) -> herr_t {
    if (number == 0 && error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first, &text);
  H5Eclear2(H5E_DEFAULT);
  return text.empty() ? "HDF5 gives no reason" : one_line(text);
}

void do_without_locks([[maybe_unused]] hid_t access) {
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
  H5Pset_file_locking(access, false, true);
#else
  setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0);  // HDF5 reads it whenever it opens a file
#endif
}

Handle opened(const std::string& path) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // exceptions contain the errors
  // HDF5 would wait for the writer of a FIFO, and its messages are longer.
  if (const std::string problem = why_unreadable(path); !problem.empty())
    throw Error(ExitCode::usage, "{}: {}", path, problem);
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  do_without_locks(access);
  Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), H5Fclose);
  if (file < 0) throw Error(ExitCode::usage, "{}: is not a complete HDF5 file: {}", path, reason());
  return file;
}

}  // namespace

bool has_hdf5() { return true; }

struct Hdf5Array::State {
  std::string path, name;
  Handle file, array{};

  [[noreturn]] void fail(const std::string& why) const {
    throw Error(ExitCode::usage, "{}: {}: {}", path, name, why);
  }
  template <class Id>
  Id checked(Id id) const {
    if (id < 0) fail(reason());
    return id;
  }

  /// Opens the array. Rejects other files, which might be FIFOs, and which the checksums of this
  /// file do not cover.
  void open() {
    const Handle access(H5Pcreate(H5P_LINK_ACCESS), H5Pclose);
    bool leaves = false;
    const auto refuse = [](const char*, const char*, const char*, const char*, unsigned*, hid_t,
                           void* found) -> herr_t {
      *static_cast<bool*>(found) = true;
      return -1;
    };
    H5Pset_elink_cb(access, refuse, &leaves);
    array = Handle(H5Oopen(file, name.c_str(), access), H5Oclose);
    if (leaves) fail("must be in this file, not behind a link to another one");
    checked(hid_t(array));
    if (H5Iget_type(array) != H5I_DATASET) fail("must be an array");
    const Handle creation(checked(H5Dget_create_plist(array)), H5Pclose);
    if (H5Pget_layout(creation) == H5D_VIRTUAL || H5Pget_external_count(creation) > 0)
      fail("must have its elements in this file, not in other ones");
    check_elements(creation);
  }

  /// Throws Error if the elements are no numbers, or are packed by a filter that this HDF5 lacks.
  void check_elements(hid_t creation) const {
    const Handle type(checked(H5Dget_type(array)), H5Tclose);
    // h5py stores booleans as an enumeration, which HDF5 converts to numbers.
    if (const H5T_class_t kind = H5Tget_class(type);
        kind != H5T_INTEGER && kind != H5T_FLOAT && kind != H5T_ENUM)
      fail("must have elements that are integers, real numbers or booleans");
    const auto filters = static_cast<unsigned>(checked(H5Pget_nfilters(creation)));
    for (unsigned i = 0; i < filters; ++i) {
      std::array<char, 64> label{};
      std::size_t values = 0;
      unsigned flags = 0, config = 0;
      const H5Z_filter_t filter = checked(H5Pget_filter2(creation, i, &flags, &values, nullptr,
                                                         label.size(), label.data(), &config));
      if (H5Zfilter_avail(filter) > 0) continue;
      H5Eclear2(H5E_DEFAULT);
      fail(
          fmt::format("is packed with the HDF5 filter {} \"{}\", which is not installed: "
                      "name its directory in HDF5_PLUGIN_PATH, or pack with gzip instead",
                      filter, one_line(label.data())));
    }
  }

  Shape shape() const {
    const Handle space(checked(H5Dget_space(array)), H5Sclose);
    std::array<hsize_t, most_dimensions> extents{};
    const int dimensions = H5Sget_simple_extent_ndims(space);
    if (dimensions < 1 || dimensions > static_cast<int>(most_dimensions))
      fail(fmt::format("must have 1 to {} dimensions", most_dimensions));
    H5Sget_simple_extent_dims(space, extents.data(), nullptr);
    return {extents.begin(), extents.begin() + dimensions};
  }
};

Hdf5Array::Hdf5Array(const std::string& path, const std::string& name)
    : state_(std::make_shared<State>(State{path, name, opened(path)})) {
  state_->open();
  shape_ = state_->shape();
}

void Hdf5Array::read(Range rows, DType type, void* values) const {
  const State& state = *state_;
  std::vector<hsize_t> first(shape_.size(), 0), count(shape_.begin(), shape_.end());
  first[0] = static_cast<hsize_t>(rows.begin);
  count[0] = static_cast<hsize_t>(rows.count);
  const Handle in_file(state.checked(H5Dget_space(state.array)), H5Sclose);
  H5Sselect_hyperslab(in_file, H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr);
  if (H5Sselect_valid(in_file) <= 0) state.fail("is smaller than the requested part");
  const Handle in_memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr),
                         H5Sclose);
  state.checked(H5Dread(state.array, type == DType::float64 ? H5T_NATIVE_DOUBLE : H5T_NATIVE_FLOAT,
                        in_memory, in_file, H5P_DEFAULT, values));
}

}  // namespace tessera
