#include "libcore/data/shards/member_index.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "libcore/base/error.h"
#include "libcore/io/ahead/bgzf_block.h"

namespace megalith {
namespace {

constexpr std::array<uint8_t, 4> kZstdMagic = {0x28, 0xb5, 0x2f, 0xfd};

template <class T>
T number_at(const std::vector<uint8_t>& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);  // both formats are little-endian, as we are
  return value;
}

/// Bytes [from, from + most) of the file, fewer at its end.
std::vector<uint8_t> bytes_of(const ReadableFile& file, uint64_t from, uint64_t most) {
  std::vector<uint8_t> bytes(static_cast<size_t>(std::min(most, file.size() - std::min(from, file.size()))));
  file.read_at(from, bytes.data(), bytes.size());
  return bytes;
}

// ---- zstd: the last frame is a skippable one that holds an entry for each frame before it, and at its end
// the number of frames, a byte of flags, and a magic number (seekable_format.md, version 0.1.0).

constexpr uint32_t kSkippable = 0x184d2a5e, kSeekable = 0x8f92eab1;
constexpr uint64_t kSkippableHeader = 8, kSeekFooter = 9;
constexpr uint8_t kChecksums = 0x80, kReservedBits = 0x7c;

struct SeekTable {
  uint64_t entries, entry_bytes;
  uint64_t bytes() const { return kSkippableHeader + entries * entry_bytes + kSeekFooter; }
};

std::optional<SeekTable> seek_table(const ReadableFile& file) {
  if (file.size() < kSkippableHeader + kSeekFooter) return std::nullopt;
  const std::vector<uint8_t> footer = bytes_of(file, file.size() - kSeekFooter, kSeekFooter);
  const uint8_t flags = footer[4];
  if (number_at<uint32_t>(footer, 5) != kSeekable || (flags & kReservedBits) != 0) return std::nullopt;
  const SeekTable table{number_at<uint32_t>(footer, 0), (flags & kChecksums) != 0 ? 12U : 8U};
  if (table.bytes() > file.size()) return std::nullopt;
  const std::vector<uint8_t> header = bytes_of(file, file.size() - table.bytes(), kSkippableHeader);
  const bool sound = number_at<uint32_t>(header, 0) == kSkippable &&
                     number_at<uint32_t>(header, 4) == table.bytes() - kSkippableHeader;
  return sound ? std::optional(table) : std::nullopt;
}

/// Where each frame begins. Empty if the table does not describe this file, as after two files were joined.
std::vector<uint64_t> frame_begins(const ReadableFile& file, const SeekTable& table) {
  const uint64_t first = file.size() - table.bytes() + kSkippableHeader;
  const std::vector<uint8_t> entries = bytes_of(file, first, table.entries * table.entry_bytes);
  std::vector<uint64_t> begins;
  begins.reserve(table.entries);
  uint64_t at = 0;
  for (size_t entry = 0; entry < entries.size(); entry += table.entry_bytes) {
    begins.push_back(at);
    at += number_at<uint32_t>(entries, entry);
  }
  if (at + table.bytes() != file.size()) begins.clear();
  return begins;
}

// ---- BGZF (bgzf_block.h)

/// Whether blocks follow each other from `at` on: bytes of compressed data that look like one header are not
/// followed by several more, each where the one before it says.
bool blocks_follow(const std::vector<uint8_t>& bytes, size_t at, bool to_the_end) {
  for (int seen = 0; seen < 3; ++seen) {
    if (to_the_end && at == bytes.size()) return seen > 0;
    const auto size = bgzf_block_size(bytes, at);
    if (!size) return false;
    at += *size;
  }
  return true;
}

uint64_t block_at_or_behind(const ReadableFile& file, uint64_t byte) {
  if (byte >= file.size()) return file.size();
  const std::vector<uint8_t> bytes = bytes_of(file, byte, 5 * kMaxBgzfBlock);
  const bool to_the_end = byte + bytes.size() == file.size();
  for (size_t at = 0; at < std::min(bytes.size(), kMaxBgzfBlock); ++at)
    if (blocks_follow(bytes, at, to_the_end)) return byte + at;
  if (to_the_end && bytes.size() < kMaxBgzfBlock) return file.size();
  fail(ErrorKind::kData, file.path(), ": no block of BGZF begins in the 64 KiB behind byte ", byte,
       "; the file is damaged, or was joined with one that bgzip did not make: restore it, make it with "
       "bgzip, or give --shard-by files");
}

}  // namespace

std::optional<MemberIndex> MemberIndex::of(const std::string& path) {
  const ReadableFile file(path);
  const std::vector<uint8_t> head = bytes_of(file, 0, kMaxBgzfBlock);
  MemberIndex index(path);
  if (bgzf_block_size(head, 0)) return index;
  if (head.size() < kZstdMagic.size() || !std::equal(kZstdMagic.begin(), kZstdMagic.end(), head.begin()))
    return std::nullopt;
  if (const auto table = seek_table(file)) index.begins_ = frame_begins(file, *table);
  return index.begins_.empty() ? std::nullopt : std::optional(index);
}

uint64_t MemberIndex::at_or_behind(uint64_t byte) const {
  const ReadableFile file(path_);
  if (begins_.empty()) return block_at_or_behind(file, byte);
  const auto found = std::lower_bound(begins_.begin(), begins_.end(), byte);
  return found == begins_.end() ? file.size() : *found;
}

}  // namespace megalith
