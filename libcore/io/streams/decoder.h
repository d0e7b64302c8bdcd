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
    const char* error = nullptr;  // why the data is damaged; the other members are then meaningless
  };

  virtual ~Decoder() = default;
  /// Decodes bytes of `in` to `out`; either may be empty. std::bad_alloc if there is not enough memory.
  virtual Step decode(std::span<const char> in, std::span<char> out) = 0;
  virtual const char* format() const = 0;  // "gzip"
  /// Whether zero bytes may follow a member. They may in gzip (padding on tapes) and in xz (stream padding).
  virtual bool allows_padding() const = 0;
  virtual uint64_t memory() const = 0;  // bytes that the decoder holds now
};

enum class Compression : uint8_t { kGzip, kZstd, kBzip2, kXz };

/// The decoder for data that begins with `head`; null if `head` begins with no format's magic number. The
/// first call that needs them opens the formats' libraries (base/plugin.h); kDevice if they are missing.
std::unique_ptr<Decoder> make_decoder(std::string_view head);

/// The format, such as "gzip", that the extension of a file name implies (.gz, .zst, .bz2, .xz); empty for
/// any other extension.
std::string_view compression_of(std::string_view path);

/// Whether data that begins with `head` needs more bytes to tell how it is compressed.
bool magic_undecided(std::string_view head);

/// The largest window that an xz stream may ask for, so that a crafted one cannot take all memory; xz -9 uses
/// 64 MiB.
constexpr uint64_t kXzMemoryLimit = uint64_t{80} << 20;

}  // namespace megalith
