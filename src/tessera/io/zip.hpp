// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace tessera {

/// CRC-32 as of ISO 3309 and ZIP, of bytes that follow others with the sum `before`.
std::uint32_t crc32(const char* bytes, std::size_t count, std::uint32_t before = 0);

/// A ZIP archive whose members are stored as they are, which is what numpy.savez() writes. Member
/// and archive stay below 4 GiB, the limit of the format without extensions.
class ZipWriter {
 public:
  static constexpr std::uint64_t limit = 0xffffffff;

  explicit ZipWriter(std::ostream& out) : out_(out) {}
  /// One member. Throws Error (usage) where the archive would reach the limit.
  void add(const std::string& name, const std::string& head, const char* body, std::size_t count);
  /// The list of members, behind the last one.
  void finish();

 private:
  struct Member {
    std::string name;
    std::uint32_t sum, size, offset;
  };
  std::ostream& out_;
  std::vector<Member> members_;
  std::uint64_t written_ = 0;
};

}  // namespace tessera
