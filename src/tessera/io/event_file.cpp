// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <unistd.h>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/io/event_file.hpp>
#include <tessera/io/protobuf.hpp>

namespace tessera {
namespace {

constexpr std::string_view event_prefix = "events.out.tfevents.";

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  constexpr std::uint32_t polynomial = 0x82f63b78;  // CRC-32C (Castagnoli), reflected
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? polynomial : 0);
    table[byte] = crc;
  }
  return table;
}

/// Returns the CRC-32C of the bytes, rotated and shifted as TFRecord wants it.
std::string masked_checksum(std::string_view bytes) {
  constexpr std::array<std::uint32_t, 256> table = make_crc_table();
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes)
    crc = (crc >> 8) ^ table[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return little_endian(std::rotr(~crc, 15) + 0xa282ead8U);
}

std::string framed(const std::string& message) {
  const std::string length = little_endian(static_cast<std::uint64_t>(message.size()));
  return length + masked_checksum(length) + message + masked_checksum(message);
}

// Numbers of the fields.
namespace event {
constexpr std::uint64_t wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7;
}
namespace summary {
constexpr std::uint64_t value = 1, value_tag = 1, value_simple = 2;
}
namespace session_log {
constexpr std::uint64_t status = 1;
constexpr Size start = 1;
}  // namespace session_log

}  // namespace

std::string event_version(double time) {
  return framed(double_field(event::wall_time, time) +
                bytes_field(event::file_version, "brain.Event:2"));
}

std::string event_restart(double time, Size step) {
  return framed(
      double_field(event::wall_time, time) + integer_field(event::step, step) +
      bytes_field(event::session_log, integer_field(session_log::status, session_log::start)));
}

std::string event_numbers(double time, Size step, std::span<const NamedNumber> numbers) {
  std::string values;
  for (const auto& [name, number] : numbers)
    values += bytes_field(summary::value,
                          bytes_field(summary::value_tag, name) +
                              float_field(summary::value_simple, static_cast<float>(number)));
  return framed(double_field(event::wall_time, time) + integer_field(event::step, step) +
                bytes_field(event::summary, values));
}

std::filesystem::path new_event_file(const std::filesystem::path& directory, double time) {
  auto seconds = static_cast<Size>(time);
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(event_prefix)) continue;
    const auto other = number_of<Size>(split_text(name.substr(event_prefix.size()), '.').front());
    if (other) seconds = std::max(seconds, *other + 1);
  }
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return directory / fmt::format("{}{:010}.{}.{}", event_prefix, seconds, host.data(), getpid());
}

bool is_name_of_event_file(const std::string& name) {
  return name.starts_with(event_prefix) || name == event_lock;
}

}  // namespace tessera
