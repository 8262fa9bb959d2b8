// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <tessera/base/placement.hpp>
#include <tessera/base/types.hpp>
#include <tessera/comm/communicator.hpp>

namespace tessera {

/// Whether this program was built with parallel HDF5. Without it every Hdf5File throws Error
/// (usage) that says so.
bool has_hdf5();

/// A box of an array: along each dimension, its first index and its extent.
struct Hyperslab {
  Shape first, count;
  friend bool operator==(const Hyperslab&, const Hyperslab&) = default;
};

using AttributeValue = std::variant<Size, double, std::string>;

/// What there is to know of an array of a file.
struct ArrayFacts {
  std::string name;  ///< with its groups, "parameters/layer1/kernel"
  Shape shape;
  DType type = DType::float32;
};

/// An HDF5 file of named arrays, texts and attributes. Everything that fails throws Error (usage):
/// the file, the array and the reason that HDF5 gives. Arrays are contiguous in the file and their
/// space is taken at once, so that a file which has been created has room for all of its data;
/// those of 1 MiB and more begin at a multiple of 1 MiB. HDF5's locks are used where the file
/// system has locks.
class Hdf5File {
 public:
  /// A new file, in place of what is there, written by this process alone.
  static Hdf5File create(const std::string& path);
  /// To read, by this process alone: an error on one rank holds nobody up.
  static Hdf5File open(const std::string& path);
  /// To change values of arrays and attributes, by this process alone.
  static Hdf5File change(const std::string& path);
  /// To change values of arrays by all of these ranks together. Collective, like write() and
  /// close() then are: a rank that fails still makes the calls that follow.
  static Hdf5File change(const std::string& path, const Communicator& ranks);

  Hdf5File(Hdf5File&&) noexcept;
  Hdf5File& operator=(Hdf5File&&) = delete;
  /// Closes the file, and ignores what goes wrong.
  ~Hdf5File();

  void add_array(const ArrayFacts& facts);
  void add_text(const std::string& name, const std::string& text);
  /// Of an array or text, or with the name "" of the file; replaces an earlier value of the same
  /// kind and size.
  void set_attribute(const std::string& name, const std::string& attribute,
                     const AttributeValue& value);

  /// `values`: the elements of these boxes, one after the other; boxes are apart and ascend in
  /// row-major order. `type` must be the array's. Nothing is written where there are no boxes.
  void write(const std::string& name, DType type, const std::vector<Hyperslab>& boxes,
             const void* values);
  void read(const std::string& name, DType type, const std::vector<Hyperslab>& boxes,
            void* values) const;

  /// The byte of the file at which the elements of an array begin, all of them in row-major order
  /// and little-endian: whoever may not use HDF5 can write them there once the file is closed.
  Size place_of(const std::string& name) const;
  /// Extents of an array of integers, real numbers or booleans, of whatever type, that can be read.
  Shape shape_of_numbers(const std::string& name) const;
  /// Reads a part of such an array, converted to `type`.
  void read_numbers(const std::string& name, DType type, const Hyperslab& box, void* values) const;

  /// All arrays, by name; texts are none.
  std::vector<ArrayFacts> arrays() const;
  std::string text(const std::string& name) const;
  AttributeValue attribute(const std::string& name, const std::string& attribute) const;

  /// Hands everything to the operating system and closes the file; nothing else may follow.
  void close();

 private:
  struct State;
  explicit Hdf5File(std::unique_ptr<State> state);
  static std::unique_ptr<State> opened(const std::string& path, unsigned how);
  std::unique_ptr<State> state_;
};

}  // namespace tessera
