// SPDX-License-Identifier: Apache-2.0
// After APPNOTE.TXT 6.3 of PKWARE, sections 4.3.7, 4.3.12 and 4.3.16.
#include <array>

#include <tessera/base/error.hpp>
#include <tessera/io/zip.hpp>

namespace tessera {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table = [] {
  constexpr std::uint32_t polynomial = 0xedb88320;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit)
      table[i] = table[i] >> 1 ^ (table[i] % 2 != 0 ? polynomial : 0);
  }
  return table;
}();

void put(std::string& out, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

/// What the header of a member and its entry in the list have in common.
void put_facts(std::string& out, std::uint32_t sum, std::uint32_t size, const std::string& name) {
  constexpr std::uint32_t version = 20, first_of_january_1980 = 0x21;
  put(out, version, 2);
  put(out, 0, 2);  // no flags
  put(out, 0, 2);  // stored
  put(out, 0, 2);  // midnight
  put(out, first_of_january_1980, 2);
  put(out, sum, 4);
  put(out, size, 4);
  put(out, size, 4);
  put(out, static_cast<std::uint32_t>(name.size()), 2);
  put(out, 0, 2);  // nothing extra
}

}  // namespace

std::uint32_t crc32(const char* bytes, std::size_t count, std::uint32_t before) {
  std::uint32_t sum = ~before;
  for (std::size_t i = 0; i < count; ++i)
    sum = crc_table[(sum ^ static_cast<unsigned char>(bytes[i])) & 0xff] ^ sum >> 8;
  return ~sum;
}

void ZipWriter::add(const std::string& name, const std::string& head, const char* body,
                    std::size_t count) {
  const std::uint64_t size = head.size() + count;
  if (written_ + size + (1 << 16) > limit)
    throw Error(ExitCode::usage, name + ": does not fit: the archive would reach 4 GiB");
  const Member member{name, crc32(body, count, crc32(head.data(), head.size())),
                      static_cast<std::uint32_t>(size), static_cast<std::uint32_t>(written_)};
  std::string header("PK\x03\x04");
  put_facts(header, member.sum, member.size, name);
  header += name + head;
  out_ << header;
  out_.write(body, static_cast<std::streamsize>(count));
  written_ += header.size() + count;
  members_.push_back(member);
}

void ZipWriter::finish() {
  std::string list;
  for (const Member& member : members_) {
    list += "PK\x01\x02";
    put(list, 20, 2);  // made by version 2.0
    put_facts(list, member.sum, member.size, member.name);
    put(list, 0, 2);  // no comment
    put(list, 0, 2);  // on the first disk
    put(list, 0, 2);
    put(list, 0, 4);  // no attributes
    put(list, member.offset, 4);
    list += member.name;
  }
  std::string end("PK\x05\x06");
  put(end, 0, 4);  // one disk
  put(end, static_cast<std::uint32_t>(members_.size()), 2);
  put(end, static_cast<std::uint32_t>(members_.size()), 2);
  put(end, static_cast<std::uint32_t>(list.size()), 4);
  put(end, static_cast<std::uint32_t>(written_), 4);
  put(end, 0, 2);  // no comment
  out_ << list << end;
}

}  // namespace tessera
