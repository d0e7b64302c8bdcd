#include "libcore/io/ahead/bzip2_pieces.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/io/ahead/fed_decoder.h"
#include "libcore/io/files/file.h"
#include "libcore/io/streams/stop_signal.h"

namespace megalith {
namespace {

constexpr unsigned kMarkBits = 48, kSumBits = 32;
constexpr uint64_t kBlock = 0x314159265359, kEnd = 0x177245385090;
constexpr uint64_t kStreamHeader = 32;  // bits: "BZh" and a digit

/// Whether the byte behind the one in which a mark begins may follow: bit s is set if it may where the mark
/// begins at bit s of its first byte.
constexpr std::array<uint8_t, 256> marks_by_second_byte() {
  std::array<uint8_t, 256> masks{};
  for (const uint64_t mark : {kBlock, kEnd})
    for (unsigned shift = 0; shift < 8; ++shift)
      masks[mark >> (kMarkBits - 16 + shift) & 0xff] |= static_cast<uint8_t>(1U << shift);
  return masks;
}
constexpr std::array<uint8_t, 256> kSecondBytes = marks_by_second_byte();

/// Reads the bits of a file, the first of each byte being its highest.
class BitFile {
 public:
  explicit BitFile(const std::string& path) : file_(path) {}

  uint64_t bits() const { return file_.size() * 8; }
  /// The `count` bits from `at` on, at most 48; bits behind the end are zero.
  uint64_t read(uint64_t at, unsigned count) {
    const unsigned shift = at % 8;
    return window_at(at / 8) << shift >> (64 - count);
  }
  /// The first place at or behind `at` with a mark; bits() if there is none, or none begins before `end`,
  /// where the search ends: a file may be large and hold no mark any more.
  uint64_t find_mark(uint64_t at, uint64_t end) {
    for (uint64_t byte = at / 8; byte + 6 <= file_.size() && byte * 8 < end; ++byte) {
      load(byte);
      const uint64_t last = std::min<uint64_t>(begin_ + window_.size(), file_.size()) - 6;
      for (; byte <= last; ++byte) {
        const unsigned shifts = kSecondBytes[window_[byte - begin_ + 1]];
        if (shifts == 0) continue;
        if (const auto found = mark_in(byte, shifts); found && *found >= at) return *found;
      }
      --byte;
    }
    return bits();
  }

 private:
  static constexpr size_t kWindow = size_t{1} << 18;

  std::optional<uint64_t> mark_in(uint64_t byte, unsigned shifts) {
    for (unsigned shift = 0; shift < 8; ++shift) {
      if ((shifts >> shift & 1U) == 0 || byte * 8 + shift + kMarkBits > bits()) continue;
      const uint64_t found = window_at(byte) << shift >> (64 - kMarkBits);
      if (found == kBlock || found == kEnd) return byte * 8 + shift;
    }
    return std::nullopt;
  }
  /// Eight bytes as a number, the first of them the highest.
  uint64_t window_at(uint64_t byte) {
    load(byte);
    uint64_t value = 0;
    for (size_t i = 0; i < 8; ++i) {
      const uint64_t at = byte - begin_ + i;
      value = value << 8 | (at < window_.size() ? window_[at] : 0);
    }
    return value;
  }
  /// Has the eight bytes from `byte` on in the window, as far as the file has them.
  void load(uint64_t byte) {
    const uint64_t end = std::min(byte + 8, file_.size());
    if (byte >= begin_ && end <= begin_ + window_.size()) return;
    stop_if_asked();
    begin_ = byte;
    window_.resize(static_cast<size_t>(std::min<uint64_t>(kWindow, file_.size() - byte)));
    file_.read_at(byte, window_.data(), window_.size());
  }

  ReadableFile file_;
  uint64_t begin_ = 0;
  std::vector<uint8_t> window_;
};

/// Adds bits to bytes.
class BitWriter {
 public:
  void put(uint64_t value, unsigned count) {
    for (unsigned left = count; left > 0; --left) put_bit(value >> (left - 1) & 1U);
  }
  /// Adds the bits [begin, end) of `bytes`.
  void put_range(std::span<const uint8_t> bytes, uint64_t begin, uint64_t end);
  std::vector<char> take() {
    while (used_ > 0) put_bit(false);
    return std::move(bytes_);
  }

 private:
  void put_bit(bool bit) {
    last_ = static_cast<uint8_t>(last_ << 1 | (bit ? 1 : 0));
    if (++used_ < 8) return;
    bytes_.push_back(static_cast<char>(last_));
    used_ = 0;
  }

  std::vector<char> bytes_;
  uint8_t last_ = 0;
  unsigned used_ = 0;
};

void BitWriter::put_range(std::span<const uint8_t> bytes, uint64_t begin, uint64_t end) {
  const unsigned shift = begin % 8;
  uint64_t at = begin;
  if (used_ == 0) {
    bytes_.reserve(bytes_.size() + (end - begin) / 8 + 16);
    for (; at + 16 <= end; at += 8) {
      const unsigned both = unsigned{bytes[at / 8]} << 8 | bytes[at / 8 + 1];
      bytes_.push_back(static_cast<char>(both << shift >> 8 & 0xff));
    }
  }
  for (; at < end; ++at) put_bit((bytes[at / 8] >> (7 - at % 8) & 1U) != 0);
}

/// A block, decompressed as the only one of a stream that is made here.
class Bzip2Block final : public FedDecoder {
 public:
  Bzip2Block(const std::string& path, const FilePiece& block)
      : FedDecoder(path, Compression::kBzip2), block_(block), stream_(stream_of(path, block)) {}

  uint64_t consumed() const override { return (given_ ? block_.end : block_.begin) / 8; }
  uint64_t memory() const override { return FedDecoder::memory() + stream_.capacity(); }

 protected:
  std::span<const char> more() override {
    stop_if_asked();
    return std::exchange(given_, true) ? std::span<const char>{} : std::span<const char>(stream_);
  }
  bool is_whole(uint64_t /*made*/, bool ended) const override { return ended; }

 private:
  /// The sum of a stream with one block is that block's, which follows its mark.
  static std::vector<char> stream_of(const std::string& path, const FilePiece& block) {
    const uint64_t first = block.begin / 8, last = (block.end + 7) / 8;
    std::vector<uint8_t> bytes(last - first);
    ReadableFile(path).read_at(first, bytes.data(), bytes.size());
    uint64_t sum = 0;
    for (uint64_t at = block.begin - first * 8 + kMarkBits, i = 0; i < kSumBits; ++i, ++at)
      sum = sum << 1 | (bytes[at / 8] >> (7 - at % 8) & 1U);
    BitWriter stream;
    stream.put(uint64_t{'B'} << 24 | 'Z' << 16 | 'h' << 8 | block.flags, kStreamHeader);
    stream.put_range(bytes, block.begin - first * 8, block.end - first * 8);
    stream.put(kEnd, kMarkBits);
    stream.put(sum, kSumBits);
    return stream.take();
  }

  FilePiece block_;
  std::vector<char> stream_;
  bool given_ = false;
};

class Bzip2Pieces final : public FilePieces {
 public:
  explicit Bzip2Pieces(const std::string& path) : path_(path), file_(path) {}

  std::optional<FilePiece> next() override {
    while (at_stream_ && at_ < file_.bits()) {
      begin_stream();
      if (file_.read(at_, kMarkBits) == kEnd) end_stream();  // it holds nothing
    }
    if (at_stream_) return std::nullopt;
    return block();
  }
  std::unique_ptr<ByteSource> open(const FilePiece& piece) const override {
    return std::make_unique<Bzip2Block>(path_, piece);
  }
  bool is_certain_at_end_only() const override { return true; }

 private:
  /// A longer piece holds more than one block, as where marks are missing: a block of 900,000 bytes that
  /// cannot be compressed takes about as many.
  static constexpr uint64_t kLongestBlock = 8 * uint64_t{2'000'000};

  [[noreturn]] void fail_damaged() const {
    fail(ErrorKind::kData, path_, ": no block of bzip2 begins where one should, at byte ", at_ / 8);
  }

  void begin_stream() {
    const uint64_t header = file_.read(at_, kStreamHeader);
    level_ = header & 0xff;
    if (header >> 8 != (uint64_t{'B'} << 16 | 'Z' << 8 | 'h') || level_ < '1' || level_ > '9') fail_damaged();
    at_ += kStreamHeader;
    at_stream_ = false;
    sum_ = 0;
  }

  /// Compares the sum of the stream, the blocks' sums each rotated once more than the next.
  void end_stream() {
    const bool whole = at_ + kMarkBits + kSumBits <= file_.bits();
    if (!whole || file_.read(at_ + kMarkBits, kSumBits) != sum_) fail_damaged();
    at_ = (at_ + kMarkBits + kSumBits + 7) / 8 * 8;
    at_stream_ = true;
  }

  FilePiece block() {
    if (file_.read(at_, kMarkBits) != kBlock) fail_damaged();
    sum_ = std::rotl(sum_, 1) ^ static_cast<uint32_t>(file_.read(at_ + kMarkBits, kSumBits));
    const FilePiece piece{.begin = at_,
                          .end = file_.find_mark(at_ + kMarkBits + kSumBits, at_ + kLongestBlock),
                          .flags = static_cast<uint32_t>(level_)};
    if (piece.end == file_.bits() || piece.end - piece.begin > kLongestBlock) fail_damaged();
    at_ = piece.end;
    if (file_.read(at_, kMarkBits) == kEnd) end_stream();
    return piece;
  }

  std::string path_;
  BitFile file_;
  uint64_t at_ = 0;        // the next bit
  bool at_stream_ = true;  // whether a stream's header is next
  uint64_t level_ = 0;     // the digit of the stream
  uint32_t sum_ = 0;       // of the stream's blocks so far
};

}  // namespace

std::unique_ptr<FilePieces> bzip2_pieces(const std::string& path) {
  return std::make_unique<Bzip2Pieces>(path);
}

}  // namespace megalith
