// SPDX-License-Identifier: Apache-2.0
// Replaces hdf5_file.cpp in builds without parallel HDF5.
#include <tessera/base/error.hpp>
#include <tessera/io/hdf5_file.hpp>

namespace tessera {
namespace {

[[noreturn]] void fail(const std::string& path) {
  throw Error(ExitCode::usage, path + ": this program was built without parallel HDF5");
}

}  // namespace

bool has_hdf5() { return false; }

struct Hdf5File::State {};

Hdf5File::Hdf5File(std::unique_ptr<State> state) : state_(std::move(state)) {}
Hdf5File::Hdf5File(Hdf5File&&) noexcept = default;
Hdf5File::~Hdf5File() = default;

Hdf5File Hdf5File::create(const std::string& path) { fail(path); }
Hdf5File Hdf5File::open(const std::string& path) { fail(path); }
Hdf5File Hdf5File::change(const std::string& path) { fail(path); }
Hdf5File Hdf5File::change(const std::string& path, const Communicator&) { fail(path); }

// These are never called, because no file can be opened.
void Hdf5File::add_array(const ArrayFacts&) {}
void Hdf5File::add_text(const std::string&, const std::string&) {}
void Hdf5File::set_attribute(const std::string&, const std::string&, const AttributeValue&) {}
void Hdf5File::write(const std::string&, DType, const std::vector<Hyperslab>&, const void*) {}
void Hdf5File::read(const std::string&, DType, const std::vector<Hyperslab>&, void*) const {}
Size Hdf5File::place_of(const std::string&) const { return 0; }
Shape Hdf5File::shape_of_numbers(const std::string&) const { return {}; }
std::vector<ArrayFacts> Hdf5File::arrays() const { return {}; }
std::string Hdf5File::text(const std::string&) const { return {}; }
AttributeValue Hdf5File::attribute(const std::string&, const std::string&) const { return {}; }
void Hdf5File::close() {}

}  // namespace tessera
