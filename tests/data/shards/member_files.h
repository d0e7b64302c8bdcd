#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace megalith::test {

/// `value` as `bytes` bytes, little-endian.
inline std::string little_endian(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

/// CRC-32 of gzip, bit by bit (RFC 1952, section 8).
inline uint32_t crc_of(std::string_view text) {
  uint32_t crc = 0xffffffff;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
  }
  return ~crc;
}

/// A block of BGZF (SAM specification, 4.1) whose text is stored, not compressed (RFC 1951, 3.2.4). `text`
/// has fewer than 65,000 bytes.
inline std::string bgzf_block(std::string_view text) {
  const std::string stored = std::string(1, '\1') + little_endian(text.size(), 2) +
                             little_endian(~text.size(), 2) + std::string(text);
  const std::string head("\x1f\x8b\x08\x04\0\0\0\0\0\xff\6\0BC\2\0", 16);
  const std::string tail = little_endian(crc_of(text), 4) + little_endian(text.size(), 4);
  return head + little_endian(head.size() + 2 + stored.size() + tail.size() - 1, 2) + stored + tail;
}

/// A frame of zstd whose text is one raw block (RFC 8878, 3.1.1): a single segment, with its size in 4 bytes.
inline std::string zstd_frame(std::string_view text) {
  return std::string("\x28\xb5\x2f\xfd\xa0", 5) + little_endian(text.size(), 4) +
         little_endian(text.size() << 3 | 1, 3) + std::string(text);
}

/// A text in blocks of BGZF, each of `each` bytes of it, with the empty block that ends a file.
inline std::string bgzf(std::string_view text, size_t each) {
  std::string file;
  for (size_t at = 0; at < text.size(); at += each) file += bgzf_block(text.substr(at, each));
  return file + bgzf_block("");
}

/// A text in frames of zstd with a seek table (zstd_seekable_compression_format.md, 0.1.0). `checksums`: its
/// entries have one each.
inline std::string seekable_zstd(std::string_view text, size_t each, bool checksums = false) {
  std::string file, entries;
  uint64_t frames = 0;
  for (size_t at = 0; at < text.size(); at += each, ++frames) {
    const std::string frame = zstd_frame(text.substr(at, each));
    file += frame;
    entries += little_endian(frame.size(), 4) + little_endian(std::min(each, text.size() - at), 4);
    if (checksums) entries += "sum!";
  }
  entries +=
      little_endian(frames, 4) + std::string(1, checksums ? '\x80' : '\0') + little_endian(0x8f92eab1, 4);
  return file + little_endian(0x184d2a5e, 4) + little_endian(entries.size(), 4) + entries;
}

}  // namespace megalith::test
