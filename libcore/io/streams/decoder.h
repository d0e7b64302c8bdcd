#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace megalith {

/// Decompresses one format, buffer by buffer. A compressed file holds one member (gzip), frame (zstd) or
/// stream (bzip2, xz), or several in a row.
class Decoder {
 public:
  struct Step {
    size_t taken = 0, made = 0;   // bytes of the input and of the output
    bool member_ended = false;    // the next step begins another member
    const char* error = nullptr;  // why the data is damaged; nothing else counts then
  };

  virtual ~Decoder() = default;
  /// Either may be empty. std::bad_alloc if memory is lacking.
  virtual Step decode(std::span<const char> in, std::span<char> out) = 0;
  virtual const char* format() const = 0;  // "gzip"
  /// Whether zero bytes may follow a member: in gzip, as tapes are padded, and as stream padding in xz.
  virtual bool allows_padding() const = 0;
  virtual uint64_t memory() const = 0;  // bytes that the decoder holds now
};

enum class Compression : uint8_t { kGzip, kZstd, kBzip2, kXz };

/// The decoder for data that begins with `head`; null if that is the magic number of no format. Opens the
/// libraries of the formats when they are first needed (base/plugin.h): kDevice if they are missing.
std::unique_ptr<Decoder> make_decoder(std::string_view head);

/// The format that the end of a file name implies (.gz, .zst, .bz2, .xz): "gzip"; empty for any other.
std::string_view compression_of(std::string_view path);

/// Whether more bytes are needed to know how the data is compressed.
bool magic_undecided(std::string_view head);

/// The largest window that an xz stream may ask for, so that a crafted one cannot take all memory; xz -9 uses
/// 64 MiB.
constexpr uint64_t kXzMemoryLimit = uint64_t{80} << 20;

}  // namespace megalith
