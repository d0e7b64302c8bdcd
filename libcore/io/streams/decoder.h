#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace megalith {

/// Decompresses data of one format, buffer by buffer. A compressed file consists of one or more members in a
/// row (called frames in zstd, streams in bzip2 and xz).
class Decoder {
 public:
  struct Step {
    size_t taken = 0, made = 0;   // bytes read from the input and written to the output
    bool member_ended = false;    // the member has ended; the next step begins another
    const char* error = nullptr;  // why the data is damaged; other fields are then meaningless
  };

  virtual ~Decoder() = default;
  /// Decodes bytes of `in` to `out`; either may be empty. Throws std::bad_alloc if memory is exhausted.
  virtual Step decode(std::span<const char> in, std::span<char> out) = 0;
  virtual const char* format() const = 0;  // "gzip" and so on
  /// Whether zero bytes may follow a member. They may in gzip (padding on tapes) and in xz (stream padding).
  virtual bool allows_padding() const = 0;
  virtual uint64_t memory() const = 0;  // bytes that the decoder holds now
};

enum class Compression : uint8_t { kGzip, kZstd, kBzip2, kXz };

/// The format of data that begins with `head`, by its magic number.
std::optional<Compression> compression_by_head(std::string_view head);
/// Returns a decoder for data that begins with `head`, or null if `head` begins with no known magic number.
/// Opens the formats' libraries when they are first needed (base/plugins/plugin.h); throws kDevice if they
/// are missing.
std::unique_ptr<Decoder> make_decoder(std::string_view head);
std::unique_ptr<Decoder> make_decoder(Compression compression);

/// The format, such as "gzip", that the extension of a file name implies (.gz, .zst, .bz2, .xz); empty for
/// any other extension.
std::string_view compression_of(std::string_view path);
/// The path without such an extension: "x.jsonl" for "x.jsonl.gz" and for "x.jsonl".
std::string_view uncompressed_name(std::string_view path);

/// Whether `head`, the beginning of the data, is too short to tell how the data is compressed.
bool magic_undecided(std::string_view head);

/// The largest window that an xz stream may request; more could take all memory. xz -9 uses 64 MiB.
constexpr uint64_t kXzMemoryLimit = uint64_t{80} << 20;

}  // namespace megalith
