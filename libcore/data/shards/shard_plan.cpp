#include "libcore/data/shards/shard_plan.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/data/shards/member_index.h"
#include "libcore/data/shards/record_cut.h"
#include "libcore/hash/sha256.h"
#include "libcore/hash/xxh64.h"
#include "libcore/io/files/file.h"
#include "libcore/io/parquet/parquet_footer.h"
#include "libcore/io/streams/input_stream.h"
#include "libcore/json/json.h"

namespace megalith {
namespace {

/// The number of bytes that the paths have in common up to and with a "/".
size_t common_folder(const std::vector<PlannedFile>& files) {
  if (files.empty()) return 0;
  std::string_view common = files.front().path;
  for (const PlannedFile& file : files) {
    const auto differs = std::mismatch(common.begin(), common.end(), file.path.begin(), file.path.end());
    common = common.substr(0, static_cast<size_t>(differs.first - common.begin()));
  }
  return common.rfind('/') + 1;  // 0 without a "/"
}

/// The number of bytes at a place by which two processes see whether they read the same file.
constexpr uint64_t kHashed = 4096;

/// Adds bytes [begin, end) of a file, which is at most kHashed bytes.
void hash_bytes(const PlannedFile& file, uint64_t begin, uint64_t end, Xxh64& hash) {
  std::array<std::byte, kHashed> bytes;
  const ReadableFile readable(file.path);
  if (readable.size() != file.size)
    fail(ErrorKind::kData, file.path, ": has ", readable.size(), " bytes, but a moment ago it had ",
         file.size, "; it is being changed");
  readable.read_at(begin, bytes.data(), end - begin);
  hash.update(bytes.data(), end - begin);
}

uint64_t hash_behind(const PlannedFile& file, uint64_t at) {
  if (file.object) return 0;
  Xxh64 hash;
  hash_bytes(file, at, std::min(at + kHashed, file.size), hash);
  return hash.digest();
}

}  // namespace

ShardPlan::ShardPlan(std::vector<PlannedFile> files, TextUnit unit, int64_t count, ShardBy by)
    : files_(std::move(files)), unit_(unit), count_(count), by_(by) {
  uint64_t sum = 0;
  for (const PlannedFile& file : files_) begins_.push_back(std::exchange(sum, sum + file.size));
  begins_.push_back(sum);
}

std::string ShardPlan::digest() const {
  Json names = Json::array();
  const size_t common = common_folder(files_);
  for (const PlannedFile& file : files_) {
    names.push_back(file.path.substr(common));
    names.push_back(file.size);
  }
  const Json plan = Json::Object{{"version", 1},
                                 {"shards", count_},
                                 {"by", static_cast<int64_t>(by_)},
                                 {"unit", static_cast<int64_t>(unit_)},
                                 {"files", std::move(names)}};
  return sha256_hex(plan.dump());
}

/// Finding a cut reads about half a megabyte, and a shard asks for its two several times. Cuts with even and
/// with odd numbers have a place each, so that those of a shard do not replace each other.
const ShardPlan::Cut& ShardPlan::cut(int64_t index) const {
  auto& found = found_[static_cast<size_t>(index % 2)];
  if (!found || found->first != index) found.emplace(index, find_cut(index));
  return found->second;
}

ShardPlan::Cut ShardPlan::find_cut(int64_t index) const {
  if (index <= 0) return {};
  if (index >= count_) return {.file = files_.size()};
  using Wide = unsigned __int128;
  const auto byte = static_cast<uint64_t>(Wide{begins_.back()} * static_cast<uint64_t>(index) /
                                          static_cast<uint64_t>(count_));
  const auto behind = std::upper_bound(begins_.begin(), begins_.end(), byte);
  if (behind == begins_.end()) return {.file = files_.size()};  // all files are empty
  const auto file = static_cast<size_t>(behind - begins_.begin()) - 1;
  return cut_in(file, byte - begins_[file]);
}

/// The cut at a byte of a file, 0 <= byte < its size.
ShardPlan::Cut ShardPlan::cut_in(size_t file, uint64_t byte) const {
  const std::string& path = files_[file].path;
  if (byte == 0) return {.file = file};
  if (by_ == ShardBy::kFiles || unit_ == TextUnit::kFile) return around(file, byte);
  if (is_parquet(path)) {
    const std::optional<uint64_t> group = row_group_at_or_behind(path, byte);
    if (!group) return around(file, byte);
    if (*group >= files_[file].size) return {.file = file + 1};
    return {.file = file, .place = {*group, 0}};
  }
  const std::optional<MemberIndex> members = MemberIndex::of(path);
  if ((!members && is_compressed(path)) || (unit_ == TextUnit::kNone && begins_with_array(path)))
    return around(file, byte);
  const StreamPlace from{members ? members->at_or_behind(byte) : byte, 0};
  const StreamPlace place = from.at == 0 ? from : record_behind(path, from, unit_);
  if (place.at >= files_[file].size) return {.file = file + 1};
  return {.file = file, .place = place};
}

/// The cut before or behind a file that is not cut itself.
ShardPlan::Cut ShardPlan::around(size_t file, uint64_t byte) const {
  return {.file = byte > files_[file].size / 2 ? file + 1 : file};
}

ShardEdge ShardPlan::edge(int64_t index) const {
  const Cut& at = cut(index);
  ShardEdge edge{.file = static_cast<int64_t>(at.file), .place = at.place};
  if (at.file < files_.size()) edge.hash = hash_behind(files_[at.file], at.place.at);
  return edge;
}

std::string ShardPlan::content(const std::vector<ShardPart>& parts) const {
  Xxh64 hash;
  for (const ShardPart& part : parts) {
    const PlannedFile& file = files_[part.file];
    if (file.object) continue;
    const uint64_t begin = part.part.begin.at,
                   end = std::max(begin, part.part.end ? part.part.end->at : file.size);
    hash_bytes(file, begin, std::min(begin + kHashed, end), hash);
    hash_bytes(file, end - std::min(kHashed, end - begin), end, hash);
  }
  return hex64(hash.digest());
}

std::vector<ShardPart> ShardPlan::parts(int64_t index) const {
  const Cut &begin = cut(index), &end = cut(index + 1);
  std::vector<ShardPart> parts;
  for (size_t file = begin.file; file <= end.file && file < files_.size(); ++file) {
    ShardPart part{.file = file};
    if (file == begin.file) part.part.begin = begin.place;
    if (file == end.file) {
      if (end.place <= part.part.begin) break;
      part.part.end = end.place;
    }
    const uint64_t last = part.part.end ? part.part.end->at : files_[file].size;
    part.bytes = last - std::min(last, part.part.begin.at);
    parts.push_back(part);
  }
  return parts;
}

}  // namespace megalith
