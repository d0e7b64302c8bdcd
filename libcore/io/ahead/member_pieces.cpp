#include "libcore/io/ahead/member_pieces.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/io/ahead/bgzf_block.h"
#include "libcore/io/ahead/stream_source.h"
#include "libcore/io/files/file.h"
#include "libcore/io/streams/stop_signal.h"

namespace megalith {
namespace {

/// Finds members one by one.
class MemberPieces : public FilePieces {
 public:
  explicit MemberPieces(const std::string& path) : file_(path) {}

  std::optional<FilePiece> next() override {
    if (at_ >= file_.size()) return std::nullopt;
    FilePiece piece{.begin = at_, .end = at_};
    while (piece.end < file_.size() && piece.end - piece.begin < kPieceBytes) {
      stop_if_asked();
      piece.end = end_of_member(piece.end);
    }
    at_ = piece.end;
    return piece;
  }
  std::unique_ptr<ByteSource> open(const FilePiece& piece) const override {
    return std::make_unique<StreamSource>(file_.path(),
                                          StreamPart{{piece.begin, 0}, StreamPlace{piece.end, 0}});
  }
  bool is_certain_at_end_only() const override { return false; }

  uint64_t size() const { return file_.size(); }
  /// Where the member that begins at `at` ends. kData if none begins there.
  virtual uint64_t end_of_member(uint64_t at) const = 0;

 protected:
  /// Up to `most` bytes from `at` on.
  std::vector<uint8_t> bytes_at(uint64_t at, uint64_t most) const {
    std::vector<uint8_t> bytes(
        static_cast<size_t>(std::min(most, file_.size() - std::min(at, file_.size()))));
    file_.read_at(at, bytes.data(), bytes.size());
    return bytes;
  }
  [[noreturn]] void fail_damaged(uint64_t at) const {
    fail(ErrorKind::kData, file_.path(), ": no member begins where one should, at byte ", at);
  }
  uint64_t checked(uint64_t end) const {
    if (end > file_.size()) fail_damaged(file_.size());
    return end;
  }

 private:
  ReadableFile file_;
  uint64_t at_ = 0;
};

class BgzfPieces final : public MemberPieces {
 public:
  using MemberPieces::MemberPieces;

  uint64_t end_of_member(uint64_t at) const override {
    constexpr uint64_t kUsualHeader = 18;
    for (const uint64_t most : {kUsualHeader, uint64_t{kMaxBgzfBlock}})
      if (const auto size = bgzf_block_size(bytes_at(at, most), 0)) return checked(at + *size);
    fail_damaged(at);
  }
};

class ZstdPieces final : public MemberPieces {
 public:
  using MemberPieces::MemberPieces;

  uint64_t end_of_member(uint64_t at) const override { return *end_within(at, ~uint64_t{0}); }

  /// As end_of_member(); nothing if the frame is longer than `most` bytes.
  std::optional<uint64_t> end_within(uint64_t at, uint64_t most) const {
    constexpr uint32_t kFrame = 0xfd2fb528, kSkippable = 0x184d2a50, kSkippableMask = 0xfffffff0;
    const std::vector<uint8_t> head = bytes_at(at, 8);
    if (head.size() < 8) fail_damaged(at);
    const uint32_t magic = number(head, 0);
    if ((magic & kSkippableMask) == kSkippable) return checked(at + 8 + number(head, 4));
    if (magic != kFrame) fail_damaged(at);
    return end_of_blocks(at + header_bytes(head[4]), (head[4] & 4U) != 0, at, most);
  }

 private:
  static uint32_t number(const std::vector<uint8_t>& bytes, size_t at) {
    uint32_t value;
    std::memcpy(&value, bytes.data() + at, sizeof value);  // the format is little-endian, as we are
    return value;
  }

  /// The bytes of a frame's header, by its descriptor (3.1.1.1.1).
  static uint64_t header_bytes(unsigned descriptor) {
    constexpr std::array<uint64_t, 4> kSizes = {0, 2, 4, 8}, kDictionaries = {0, 1, 2, 4};
    const bool single = (descriptor & 0x20U) != 0;
    const uint64_t size = kSizes[descriptor >> 6];
    return 5 + (single ? 0 : 1) + kDictionaries[descriptor & 3U] + (single && size == 0 ? 1 : size);
  }

  /// Goes from block to block by their headers of three bytes (3.1.1.2).
  std::optional<uint64_t> end_of_blocks(uint64_t at, bool has_sum, uint64_t begin, uint64_t most) const {
    for (bool last = false; !last;) {
      const std::vector<uint8_t> header = bytes_at(at, 3);
      if (header.size() < 3) fail_damaged(at);
      const unsigned bits = header[0] | unsigned{header[1]} << 8 | unsigned{header[2]} << 16,
                     kind = bits >> 1 & 3U;
      if (kind == 3) fail_damaged(at);
      last = (bits & 1U) != 0;
      at = checked(at + 3 + (kind == 1 ? 1 : bits >> 3));  // a run has one byte
      if (at - begin > most) return std::nullopt;
      stop_if_asked();
    }
    return checked(at + (has_sum ? 4 : 0));
  }
};

}  // namespace

std::unique_ptr<FilePieces> bgzf_pieces(const std::string& path) {
  const ReadableFile file(path);
  std::vector<uint8_t> head(static_cast<size_t>(std::min<uint64_t>(file.size(), kMaxBgzfBlock)));
  file.read_at(0, head.data(), head.size());
  if (!bgzf_block_size(head, 0)) return nullptr;
  return std::make_unique<BgzfPieces>(path);
}

std::unique_ptr<FilePieces> zstd_pieces(const std::string& path) {
  constexpr uint64_t kLongFrame = uint64_t{1} << 26;
  auto pieces = std::make_unique<ZstdPieces>(path);
  const auto end = pieces->end_within(0, kLongFrame);
  if (!end || *end == pieces->size()) return nullptr;
  return pieces;
}

}  // namespace megalith
