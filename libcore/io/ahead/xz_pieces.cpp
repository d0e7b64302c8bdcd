#include "libcore/io/ahead/xz_pieces.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "libcore/hash/crc32.h"
#include "libcore/io/ahead/fed_decoder.h"
#include "libcore/io/files/file.h"
#include "libcore/io/streams/stop_signal.h"

namespace megalith {
namespace {

constexpr size_t kHeaderBytes = 12;                    // a stream's header and footer have as many
constexpr uint64_t kLongestIndex = uint64_t{1} << 22;  // of about 600,000 blocks
constexpr uint64_t kLeastBlock = 5;  // bytes without padding; liblzma refuses a smaller number, too
/// The most blocks of a file, of which a list is kept. Those of a file that consists of small ones would take
/// more memory than the file has bytes.
constexpr size_t kMostBlocks = size_t{1} << 19;
constexpr std::array<uint8_t, 6> kMagic = {0xfd, '7', 'z', 'X', 'Z', 0};

uint32_t number_at(const uint8_t* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, sizeof value);  // the format is little-endian, as we are
  return value;
}

uint64_t rounded_up(uint64_t bytes) {
  return (bytes + 3) / 4 * 4;
}

/// The header of a stream with these flags (2.1.1).
std::array<char, kHeaderBytes> header_of(uint32_t flags) {
  std::array<char, kHeaderBytes> header{};
  std::memcpy(header.data(), kMagic.data(), kMagic.size());
  std::memcpy(header.data() + kMagic.size(), &flags, 2);
  const uint32_t crc = crc32(0, &flags, 2);
  std::memcpy(header.data() + kMagic.size() + 2, &crc, sizeof crc);
  return header;
}

/// Reads the numbers of an index (1.2), each of at most nine bytes.
class IndexNumbers {
 public:
  explicit IndexNumbers(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  std::optional<uint64_t> next() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 63 && at_ < bytes_.size(); shift += 7) {
      const uint8_t byte = bytes_[at_++];
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }
  /// Whether only zero bytes are left, fewer than four.
  bool at_padding() const {
    return bytes_.size() - at_ < 4 && std::all_of(bytes_.begin() + static_cast<ptrdiff_t>(at_), bytes_.end(),
                                                  [](uint8_t byte) { return byte == 0; });
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

/// The blocks of a stream, from its index without the CRC at its end. They are counted from the end of the
/// stream's header. Nothing if the index is damaged.
std::optional<std::vector<FilePiece>> blocks_of(std::span<const uint8_t> index, uint32_t flags) {
  IndexNumbers numbers(index.subspan(1));  // behind the byte that tells an index from a block
  const auto count = numbers.next();
  if (index[0] != 0 || !count || *count > std::min(index.size() / 2, kMostBlocks)) return std::nullopt;
  std::vector<FilePiece> blocks;
  blocks.reserve(*count);
  for (uint64_t at = 0; blocks.size() < *count; at = blocks.back().end) {
    const auto bytes = numbers.next(), makes = numbers.next();
    if (!bytes || !makes || *bytes < kLeastBlock || *bytes > uint64_t{1} << 62) return std::nullopt;
    blocks.push_back({.begin = at, .end = at + rounded_up(*bytes), .makes = *makes, .flags = flags});
    if (blocks.back().end < at) return std::nullopt;
  }
  return numbers.at_padding() ? std::optional(std::move(blocks)) : std::nullopt;
}

/// Reads the streams of a file from its end to its beginning.
class XzIndex {
 public:
  explicit XzIndex(const ReadableFile& file) : file_(file), end_(file.size()) {}

  /// The blocks of all streams; empty if one of them is damaged, or if they are too many.
  std::vector<FilePiece> blocks() {
    std::vector<std::vector<FilePiece>> streams;
    size_t count = 0;
    while (end_ > 0) {
      auto stream = last_stream();
      if (!stream || (count += stream->size() + 1) > kMostBlocks) return {};
      streams.push_back(std::move(*stream));
    }
    std::vector<FilePiece> all;
    for (auto stream = streams.rbegin(); stream != streams.rend(); ++stream)
      all.insert(all.end(), stream->begin(), stream->end());
    return all;
  }

 private:
  /// Zeros may follow a stream, four at a time.
  void skip_padding() {
    uint32_t word = 0;
    while (end_ >= sizeof word) {
      file_.read_at(end_ - sizeof word, &word, sizeof word);
      if (word != 0) return;
      end_ -= sizeof word;
    }
  }

  /// The blocks of the stream that ends at end_, which moves to its beginning.
  std::optional<std::vector<FilePiece>> last_stream() {
    stop_if_asked();
    skip_padding();
    if (end_ < 2 * kHeaderBytes) return std::nullopt;
    std::array<uint8_t, kHeaderBytes> footer{};
    file_.read_at(end_ - kHeaderBytes, footer.data(), footer.size());
    const uint32_t flags = number_at(footer.data() + 8) & 0xffff;
    const uint64_t index = (uint64_t{number_at(footer.data() + 4)} + 1) * 4;
    const bool sound =
        footer[10] == 'Y' && footer[11] == 'Z' && crc32(0, footer.data() + 4, 6) == number_at(footer.data());
    if (!sound || index > kLongestIndex || index + 2 * kHeaderBytes > end_) return std::nullopt;
    return stream_before(end_ - kHeaderBytes - index, index, flags);
  }

  std::optional<std::vector<FilePiece>> stream_before(uint64_t at, uint64_t bytes, uint32_t flags) {
    std::vector<uint8_t> index(bytes);
    file_.read_at(at, index.data(), index.size());
    const std::span<const uint8_t> body = std::span<const uint8_t>(index).first(index.size() - 4);
    if (crc32(0, body.data(), body.size()) != number_at(body.data() + body.size())) return std::nullopt;
    auto blocks = blocks_of(body, flags);
    if (!blocks) return std::nullopt;
    const uint64_t size = blocks->empty() ? 0 : blocks->back().end;
    if (size + kHeaderBytes > at) return std::nullopt;
    end_ = at - size - kHeaderBytes;
    std::array<char, kHeaderBytes> header{};
    file_.read_at(end_, header.data(), header.size());
    if (header != header_of(flags)) return std::nullopt;
    for (FilePiece& block : *blocks) {
      block.begin += end_ + kHeaderBytes;
      block.end += end_ + kHeaderBytes;
    }
    return blocks;
  }

  const ReadableFile& file_;
  uint64_t end_;  // of the streams that are not read yet
};

/// A block, decompressed as the first one of a stream that does not end.
class XzBlock final : public FedDecoder {
 public:
  XzBlock(const std::string& path, const FilePiece& block)
      : FedDecoder(path, Compression::kXz),
        file_(path),
        block_(block),
        header_(header_of(block.flags)),
        at_(block.begin) {}

  uint64_t consumed() const override { return at_; }

 protected:
  std::span<const char> more() override {
    stop_if_asked();
    if (!std::exchange(begun_, true)) return header_;
    const auto bytes = static_cast<size_t>(std::min<uint64_t>(window_.size(), block_.end - at_));
    file_.read_at(at_, window_.data(), bytes);
    at_ += bytes;
    return {window_.data(), bytes};
  }
  bool is_whole(uint64_t made, bool ended) const override { return made == block_.makes && !ended; }

 private:
  ReadableFile file_;
  FilePiece block_;
  std::array<char, kHeaderBytes> header_;
  std::vector<char> window_ = std::vector<char>(size_t{1} << 16);
  uint64_t at_;
  bool begun_ = false;
};

class XzPieces final : public FilePieces {
 public:
  XzPieces(std::string path, std::vector<FilePiece> blocks)
      : path_(std::move(path)), blocks_(std::move(blocks)) {}

  std::optional<FilePiece> next() override {
    return next_ < blocks_.size() ? std::optional(blocks_[next_++]) : std::nullopt;
  }
  std::unique_ptr<ByteSource> open(const FilePiece& piece) const override {
    return std::make_unique<XzBlock>(path_, piece);
  }
  bool is_certain_at_end_only() const override { return false; }

 private:
  std::string path_;
  std::vector<FilePiece> blocks_;
  size_t next_ = 0;
};

}  // namespace

std::unique_ptr<FilePieces> xz_pieces(const std::string& path) {
  const ReadableFile file(path);
  std::vector<FilePiece> blocks = XzIndex(file).blocks();
  if (blocks.size() < 2) return nullptr;
  return std::make_unique<XzPieces>(path, std::move(blocks));
}

}  // namespace megalith
