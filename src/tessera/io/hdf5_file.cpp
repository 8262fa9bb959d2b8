// SPDX-License-Identifier: Apache-2.0
// The only file that includes <hdf5.h>.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <hdf5.h>
#include <optional>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/detail/communicator_state.hpp>
#include <tessera/io/disk_space.hpp>
#include <tessera/io/durable_file.hpp>
#include <tessera/io/hdf5_file.hpp>
#include <tessera/io/whole_file.hpp>

namespace tessera {
namespace {

constexpr hsize_t large_array = 1 << 20;  ///< bytes; larger arrays begin at a multiple of it
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
  herr_t close() { return id_ >= 0 ? close_(std::exchange(id_, H5I_INVALID_HID)) : 0; }

 private:
  hid_t id_ = H5I_INVALID_HID;
  herr_t (*close_)(hid_t) = nullptr;
};

/// Returns true if HDF5's reason is that it could not lock the file.
bool is_about_locks(const std::string& reason) { return reason.starts_with("unable to lock file"); }

/// Returns HDF5's description of the first error.
std::string reason() {
  std::string text;
  const auto first = [](unsigned number, const H5E_error2_t* error, void* out) -> herr_t {
    if (number == 0 && error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first, &text);
  H5Eclear2(H5E_DEFAULT);
  if (text.empty()) return "HDF5 gives no reason";
  const std::string held = fmt::format("errno = {},", EAGAIN);  // another process has a lock
  if (is_about_locks(text) && text.find(held) == std::string::npos)
    text += "; the file system has no locks: set HDF5_USE_FILE_LOCKING=FALSE";
  return one_line(text);
}

/// Stops HDF5 from printing errors; exceptions contain them.
void be_quiet() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

struct TypeRow {
  DType type;
  hid_t in_file, in_memory;
};

std::array<TypeRow, 3> type_rows() {
  return {{{DType::float32, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT},
           {DType::float64, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE},
           {DType::int64, H5T_STD_I64LE, H5T_NATIVE_INT64}}};
}

TypeRow row_of_type(DType type) {
  for (const TypeRow& row : type_rows())
    if (row.type == type) return row;
  throw Error(ExitCode::usage, "files cannot hold arrays of {}", name_of(type));
}

std::vector<hsize_t> as_hsize(const Shape& shape) { return {shape.begin(), shape.end()}; }

Handle space_of(const Shape& shape) {
  return {H5Screate_simple(static_cast<int>(shape.size()), as_hsize(shape).data(), nullptr),
          H5Sclose};
}

Handle text_type(std::size_t length) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type, std::max<std::size_t>(length, 1));
  H5Tset_cset(type, H5T_CSET_UTF8);
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  return type;
}

/// Selects hyperslabs of an array, and returns their number of elements.
Size select(hid_t space, const std::vector<Hyperslab>& slabs) {
  Size elements = 0;
  H5Sselect_none(space);
  for (const Hyperslab& slab : slabs) {
    H5Sselect_hyperslab(space, elements == 0 ? H5S_SELECT_SET : H5S_SELECT_OR,
                        as_hsize(slab.first).data(), nullptr, as_hsize(slab.count).data(), nullptr);
    elements += num_elements(slab.count);
  }
  return elements;
}

}  // namespace

bool has_hdf5() { return true; }

struct Hdf5File::State {
  std::string path;
  std::optional<Communicator> ranks{};  ///< ranks that write together; none: one process
  Handle file{};

  /// Reserves disk space for all that the file has now, if this process alone changes it. If that
  /// fails, returns the reason, and what is written from now on is lost: HDF5 1.10 crashes when the
  /// program ends if it could not write what it holds for a file or an array.
  std::string reserve() const {
    hsize_t bytes = 0;
    int* descriptor = nullptr;
    if (ranks || H5Fget_filesize(file, &bytes) < 0 ||
        H5Fget_vfd_handle(file, H5P_DEFAULT, reinterpret_cast<void**>(&descriptor)) < 0)
      return {};
    const std::string problem = reserve_space(*descriptor, {0, static_cast<Size>(bytes)}, false);
    if (!problem.empty()) discard_writes(*descriptor);
    return problem;
  }
  /// Throws Error if the file would become larger than `ulimit -f` allows. HDF5 must not find out:
  /// the limit also holds for the file that takes lost writes.
  void check_limit(const std::string& name, Size more_bytes) const {
    constexpr Size metadata = 1 << 16;  // of attributes and groups
    rlimit limit{};
    hsize_t bytes = 0;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        H5Fget_filesize(file, &bytes) < 0)
      return;
    if (static_cast<Size>(bytes) + more_bytes + metadata > static_cast<Size>(limit.rlim_cur))
      fail(name, std::strerror(EFBIG));
  }
  /// Makes an array that has its place in the file.
  Handle new_array(const std::string& name, hid_t type, hid_t space) const {
    check_limit(name, static_cast<Size>(H5Tget_size(type)) * H5Sget_simple_extent_npoints(space));
    const Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
    H5Pset_create_intermediate_group(links, 1);
    const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
    H5Pset_obj_track_times(creation, false);
    Handle array(H5Dcreate2(file, name.c_str(), type, space, links, creation, H5P_DEFAULT),
                 H5Dclose);
    checked(hid_t(array), name);
    if (const std::string problem = reserve(); !problem.empty()) fail(name, problem);
    return array;
  }
  [[noreturn]] void fail(const std::string& name = "", const std::string& why = reason()) const {
    throw Error(ExitCode::usage, name.empty() ? fmt::format("{}: {}", path, why)
                                              : fmt::format("{}: {}: {}", path, name, why));
  }
  template <class Id>
  Id checked(Id id, const std::string& name = "") const {
    if (id < 0) fail(name);
    return id;
  }

  /// Runs collective calls of HDF5 under the watchdog.
  template <class F>
  void together(const Site& site, const F& f) const {
    if (!ranks) return f(MPI_COMM_NULL);
    const detail::ControlCall call(*ranks, site);
    f(call.ranks());
  }

  /// Opens the object with this name. Rejects links to other files, which might be FIFOs and which
  /// the checksums of this file do not cover.
  Handle object(const std::string& name) const {
    const Handle access(H5Pcreate(H5P_LINK_ACCESS), H5Pclose);
    bool leaves = false;
    const auto refuse = [](const char*, const char*, const char*, const char*, unsigned*, hid_t,
                           void* found) -> herr_t {
      *static_cast<bool*>(found) = true;
      return -1;
    };
    H5Pset_elink_cb(access, refuse, &leaves);
    Handle found(H5Oopen(file, name.empty() ? "/" : name.c_str(), access), H5Oclose);
    if (leaves) fail(name, "must be in this file, not behind a link to another one");
    checked(hid_t(found), name);
    return found;
  }

  Handle array(const std::string& name) const {
    Handle found = object(name);
    if (H5Iget_type(found) != H5I_DATASET) fail(name, "must be an array");
    const Handle creation(checked(H5Dget_create_plist(found), name), H5Pclose);
    if (H5Pget_layout(creation) == H5D_VIRTUAL || H5Pget_external_count(creation) > 0)
      fail(name, "must have its elements in this file, not in other ones");
    return found;
  }

  Shape shape_of(hid_t array, const std::string& name) const {
    const Handle space(checked(H5Dget_space(array), name), H5Sclose);
    std::array<hsize_t, most_dimensions> extents{};
    const int dimensions = H5Sget_simple_extent_ndims(space);
    if (dimensions < 0 || dimensions > static_cast<int>(most_dimensions))
      fail(name, fmt::format("has more than {} dimensions", most_dimensions));
    H5Sget_simple_extent_dims(space, extents.data(), nullptr);
    return {extents.begin(), extents.begin() + dimensions};
  }

  DType type_of(hid_t array, const std::string& name) const {
    const Handle type(checked(H5Dget_type(array), name), H5Tclose);
    for (const TypeRow& row : type_rows())
      if (H5Tequal(type, row.in_file) > 0) return row.type;
    fail(name, "has elements of an unknown type");
  }

  /// Throws Error if the elements are packed by a filter that this HDF5 lacks.
  void check_filters(hid_t array, const std::string& name) const {
    const Handle creation(checked(H5Dget_create_plist(array), name), H5Pclose);
    const int filters = checked(H5Pget_nfilters(creation), name);
    for (unsigned i = 0; i < static_cast<unsigned>(filters); ++i) {
      std::array<char, 64> label{};
      std::size_t values = 0;
      unsigned flags = 0, config = 0;
      const H5Z_filter_t filter = checked(H5Pget_filter2(creation, i, &flags, &values, nullptr,
                                                         label.size(), label.data(), &config),
                                          name);
      if (H5Zfilter_avail(filter) > 0) continue;
      H5Eclear2(H5E_DEFAULT);
      fail(name, fmt::format("is packed with the HDF5 filter {} \"{}\", which is not installed: "
                             "name its directory in HDF5_PLUGIN_PATH, or pack with gzip instead",
                             filter, one_line(label.data())));
    }
  }

  /// An array with selected hyperslabs, and a space in memory of as many elements.
  struct Selection {
    Handle array, in_file, in_memory;
  };
  Selection selected(const std::string& name, const std::vector<Hyperslab>& slabs) const {
    Selection selection{array(name), {}, {}};
    selection.in_file = Handle(checked(H5Dget_space(selection.array), name), H5Sclose);
    const Size elements = select(selection.in_file, slabs);
    if (H5Sselect_valid(selection.in_file) <= 0) fail(name, "is smaller than the requested part");
    selection.in_memory = space_of({elements});
    if (elements == 0) H5Sselect_none(selection.in_memory);
    return selection;
  }
};

namespace {

/// Returns true if the file system supports locks. Without them, HDF5 cannot open files.
bool has_locks(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return true;
  const bool has = flock(file, LOCK_SH | LOCK_NB) == 0 || errno == EWOULDBLOCK;
  ::close(file);
  return has;
}

void do_without_locks([[maybe_unused]] hid_t access) {
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
  H5Pset_file_locking(access, false, true);
#else
  setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0);  // HDF5 reads it whenever it opens a file
#endif
}

/// Calls f(access), and again without locks if the file system has none. The result may be invalid.
template <class F>
Handle opened_by(const std::string& path, hid_t access, const F& f) {
  Handle file(f(access), H5Fclose);
  if (file >= 0 || has_locks(path)) return file;
  do_without_locks(access);
  return {f(access), H5Fclose};
}

}  // namespace

std::unique_ptr<Hdf5File::State> Hdf5File::opened(const std::string& path, unsigned how) {
  be_quiet();
  auto state = std::make_unique<State>(State{path});
  // HDF5 would wait for the writer of a FIFO, and its messages are longer.
  if (const std::string problem = why_unreadable(path); !problem.empty()) state->fail("", problem);
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  state->file =
      opened_by(path, access, [&](hid_t list) { return H5Fopen(path.c_str(), how, list); });
  if (state->file < 0) {
    const std::string why = reason();
    state->fail(
        "", (is_about_locks(why) ? "cannot be opened: " : "is not a complete HDF5 file: ") + why);
  }
  return state;
}

Hdf5File::Hdf5File(std::unique_ptr<State> state) : state_(std::move(state)) {}
Hdf5File::Hdf5File(Hdf5File&&) noexcept = default;
Hdf5File::~Hdf5File() = default;

Hdf5File Hdf5File::create(const std::string& path) {
  be_quiet();
  auto state = std::make_unique<State>(State{path});
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  // Version 1.8 of the format is the oldest with checksums of metadata.
  H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);
  H5Pset_alignment(access, large_array, large_array);
  state->file = opened_by(path, access, [&](hid_t list) {
    return H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, list);
  });
  state->checked(hid_t(state->file));
  return Hdf5File(std::move(state));
}

Hdf5File Hdf5File::open(const std::string& path) { return Hdf5File(opened(path, H5F_ACC_RDONLY)); }

Hdf5File Hdf5File::change(const std::string& path) { return Hdf5File(opened(path, H5F_ACC_RDWR)); }

Hdf5File Hdf5File::change(const std::string& path, const Communicator& ranks) {
  if (ranks.size() == 1) return change(path);
  // A rank that cannot open the file would leave the others waiting in MPI.
  collectively(ranks, [&] { const OpenFile alone(path, O_RDWR); });
  be_quiet();
  auto state = std::make_unique<State>(State{path, ranks});
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  state->together(Site::current(), [&](MPI_Comm comm) {
    H5Pset_fapl_mpio(access, comm, MPI_INFO_NULL);
    state->file = Handle(H5Fopen(path.c_str(), H5F_ACC_RDWR, access), H5Fclose);
  });
  state->checked(hid_t(state->file));
  return Hdf5File(std::move(state));
}

void Hdf5File::add_array(const ArrayFacts& facts) {
  state_->new_array(facts.name, row_of_type(facts.type).in_file, space_of(facts.shape));
}

void Hdf5File::add_text(const std::string& name, const std::string& text) {
  const Handle type = text_type(text.size());
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Handle array = state_->new_array(name, type, space);
  state_->checked(H5Dwrite(array, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.c_str()), name);
}

void Hdf5File::set_attribute(const std::string& name, const std::string& attribute,
                             const AttributeValue& value) {
  const Handle object = state_->object(name);
  const auto set = [&](hid_t in_file, hid_t in_memory, const void* data) {
    const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    const bool is_there = H5Aexists(object, attribute.c_str()) > 0;
    const Handle made(
        is_there ? H5Aopen(object, attribute.c_str(), H5P_DEFAULT)
                 : H5Acreate2(object, attribute.c_str(), in_file, space, H5P_DEFAULT, H5P_DEFAULT),
        H5Aclose);
    state_->checked(hid_t(made), name + "/" + attribute);
    state_->checked(H5Awrite(made, in_memory, data), name + "/" + attribute);
  };
  if (const auto* number = std::get_if<Size>(&value)) set(H5T_STD_I64LE, H5T_NATIVE_INT64, number);
  if (const auto* number = std::get_if<double>(&value))
    set(H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, number);
  if (const auto* text = std::get_if<std::string>(&value)) {
    const Handle type = text_type(text->size());
    set(type, type, text->c_str());
  }
}

void Hdf5File::write(const std::string& name, DType type, const std::vector<Hyperslab>& slabs,
                     const void* values) {
  const auto [array, in_file, in_memory] = state_->selected(name, slabs);
  const Handle transfer(H5Pcreate(H5P_DATASET_XFER), H5Pclose);
  if (state_->ranks) H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
  herr_t status = 0;
  state_->together(
      Site::current(), [&, &array = array, &in_file = in_file, &in_memory = in_memory](MPI_Comm) {
        status = H5Dwrite(array, row_of_type(type).in_memory, in_memory, in_file, transfer, values);
      });
  state_->checked(status, name);
}

void Hdf5File::read(const std::string& name, DType type, const std::vector<Hyperslab>& slabs,
                    void* values) const {
  const auto [array, in_file, in_memory] = state_->selected(name, slabs);
  state_->checked(
      H5Dread(array, row_of_type(type).in_memory, in_memory, in_file, H5P_DEFAULT, values), name);
}

Shape Hdf5File::shape_of_numbers(const std::string& name) const {
  const Handle array = state_->array(name);
  const Handle type(state_->checked(H5Dget_type(array), name), H5Tclose);
  // h5py stores booleans as an enumeration, which HDF5 converts to numbers.
  if (const H5T_class_t kind = H5Tget_class(type);
      kind != H5T_INTEGER && kind != H5T_FLOAT && kind != H5T_ENUM)
    state_->fail(name, "must have elements that are integers, real numbers or booleans");
  state_->check_filters(array, name);
  return state_->shape_of(array, name);
}

Size Hdf5File::place_of(const std::string& name) const {
  const haddr_t place = H5Dget_offset(state_->array(name));
  if (place == HADDR_UNDEF) state_->fail(name, "is not stored contiguously in the file");
  return static_cast<Size>(place);
}

std::vector<ArrayFacts> Hdf5File::arrays() const {
  std::vector<std::string> names;
  const auto take = [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  state_->checked(H5Lvisit(state_->file, H5_INDEX_NAME, H5_ITER_INC, take, &names));
  std::vector<ArrayFacts> arrays;
  for (const std::string& name : names) {
    const Handle object = state_->object(name);
    if (H5Iget_type(object) != H5I_DATASET) continue;
    const Handle type(state_->checked(H5Dget_type(object), name), H5Tclose);
    if (H5Tget_class(type) == H5T_STRING) continue;
    arrays.push_back({name, state_->shape_of(object, name), state_->type_of(object, name)});
  }
  return arrays;
}

std::string Hdf5File::text(const std::string& name) const {
  constexpr std::size_t longest = 1 << 24;
  const Handle array = state_->array(name);
  const Handle type(state_->checked(H5Dget_type(array), name), H5Tclose);
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0 ||
      !state_->shape_of(array, name).empty() || H5Tget_size(type) > longest)
    state_->fail(name, "must be a single fixed-length string");
  std::string text(H5Tget_size(type), '\0');
  state_->checked(H5Dread(array, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()), name);
  return text.substr(0, text.find('\0'));
}

AttributeValue Hdf5File::attribute(const std::string& name, const std::string& attribute) const {
  const std::string place = name + "/" + attribute;
  const Handle object = state_->object(name);
  const Handle found(H5Aopen_by_name(object, ".", attribute.c_str(), H5P_DEFAULT, H5P_DEFAULT),
                     H5Aclose);
  state_->checked(hid_t(found), place);
  const Handle type(state_->checked(H5Aget_type(found), place), H5Tclose);
  const Handle space(state_->checked(H5Aget_space(found), place), H5Sclose);
  if (H5Sget_simple_extent_npoints(space) != 1) state_->fail(place, "must be a single value");
  const auto get = [&](hid_t in_memory, void* data) {
    state_->checked(H5Aread(found, in_memory, data), place);
  };
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: {
      Size value = 0;
      get(H5T_NATIVE_INT64, &value);
      return value;
    }
    case H5T_FLOAT: {
      double value = 0;
      get(H5T_NATIVE_DOUBLE, &value);
      return value;
    }
    case H5T_STRING: {
      // HDF5 limits attributes to 64 KiB.
      if (H5Tis_variable_str(type) != 0) state_->fail(place, "must be a fixed-length string");
      std::string value(H5Tget_size(type), '\0');
      get(type, value.data());
      return value.substr(0, value.find('\0'));
    }
    default:
      state_->fail(place, "must be a number or a string");
  }
}

void Hdf5File::close() {
  State& state = *state_;
  std::string problem;
  state.together(Site::current(), [&](MPI_Comm) {
    // A full disk is found here, before HDF5 writes and before other ranks open the file.
    problem = state.reserve();
    if (problem.empty() && H5Fflush(state.file, H5F_SCOPE_GLOBAL) < 0) problem = reason();
    if (state.file.close() < 0 && problem.empty()) problem = reason();
  });
  if (!problem.empty()) state.fail("", problem);
}

}  // namespace tessera
