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

/// Returns true if this program was built with parallel HDF5. Without it, every Hdf5File throws
/// Error (usage).
bool has_hdf5();

/// A rectangular part of an array: its first index and its extent along each dimension.
struct Hyperslab {
  Shape first, count;
  friend bool operator==(const Hyperslab&, const Hyperslab&) = default;
};

using AttributeValue = std::variant<Size, double, std::string>;

/// Name, shape and type of an array in a file.
struct ArrayFacts {
  std::string name;  ///< including its groups: "parameters/layer1/kernel"
  Shape shape;
  DType type = DType::float32;
};

/// An HDF5 file of named arrays, texts and attributes. Every failure throws Error (usage) with the
/// file, the array and HDF5's reason. Arrays are contiguous, and their disk space is reserved when
/// they are added, so that a complete file has space for all of its data. Arrays of 1 MiB and more
/// begin at a multiple of 1 MiB. Files are locked if the file system supports locks.
class Hdf5File {
 public:
  /// Creates a file that this process alone writes, and replaces an existing one.
  static Hdf5File create(const std::string& path);
  /// Opens a file for reading by this process alone, so that an error stops no other rank.
  static Hdf5File open(const std::string& path);
  /// Opens a file whose values and attributes this process alone changes.
  static Hdf5File change(const std::string& path);
  /// Opens a file whose values all of these ranks change together. Collective, and so are write()
  /// and close() of that file: a rank that fails must still make the later calls.
  static Hdf5File change(const std::string& path, const Communicator& ranks);

  Hdf5File(Hdf5File&&) noexcept;
  Hdf5File& operator=(Hdf5File&&) = delete;
  /// Closes the file and ignores errors.
  ~Hdf5File();

  void add_array(const ArrayFacts& facts);
  void add_text(const std::string& name, const std::string& text);
  /// Sets an attribute of an array or text, or of the file if `name` is "". Replaces a value of the
  /// same type and size.
  void set_attribute(const std::string& name, const std::string& attribute,
                     const AttributeValue& value);

  /// Writes the elements of these hyperslabs, which must not overlap and must ascend in row-major
  /// order. `values` has them one after the other, of type `type`.
  void write(const std::string& name, DType type, const std::vector<Hyperslab>& slabs,
             const void* values);
  /// Reads the elements of these hyperslabs and converts them to `type`.
  void read(const std::string& name, DType type, const std::vector<Hyperslab>& slabs,
            void* values) const;

  /// Returns the byte of the file at which the elements of an array begin, in row-major order and
  /// little-endian. Threads that must not use HDF5 may write there after close().
  Size place_of(const std::string& name) const;
  /// Returns the shape of an array of integers, real numbers or booleans of any type.
  Shape shape_of_numbers(const std::string& name) const;

  /// Returns all arrays in the order of their names, without texts.
  std::vector<ArrayFacts> arrays() const;
  std::string text(const std::string& name) const;
  AttributeValue attribute(const std::string& name, const std::string& attribute) const;

  /// Passes all data to the operating system and closes the file. Call nothing else afterwards.
  void close();

 private:
  struct State;
  explicit Hdf5File(std::unique_ptr<State> state);
  static std::unique_ptr<State> opened(const std::string& path, unsigned how);
  std::unique_ptr<State> state_;
};

}  // namespace tessera
