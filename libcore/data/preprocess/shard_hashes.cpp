#include "libcore/data/preprocess/shard_hashes.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/shell_word.h"
#include "libcore/hash/xxh64.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json_fields.h"
#include "libcore/json/json_names.h"
#include "libcore/json/sealed_json.h"

namespace megalith {
namespace {

constexpr const char* kFormat = "megalith-shard-hashes";
constexpr const char *kHashes = ".hashes", *kSeen = ".seen";
static_assert(sizeof(ContentHash) == 16);

bool comes_before(const ContentHash& a, const ContentHash& b) {
  return std::pair(a.high, a.low) < std::pair(b.high, b.low);
}

/// What the .json beside a file of hashes says.
struct FileRecord {
  HashesOf of = {};
  uint64_t hashes = 0, xxh64 = 0;

  template <class V>
  void fields(V&& v) {
    v("index", of.shard.index);
    v("count", of.shard.count);
    v("plan", of.plan);
    v("documents", of.documents);
    v("content", of.content);
    v("hashes", hashes);
    v("xxh64", Hex64{xxh64});
  }
};

std::string path_of(const std::string& folder, const Shard& shard, const char* kind) {
  return folder + "/shard" + shard.suffix() + kind;
}

std::string record_path(const std::string& path) {
  return path + ".json";
}

/// The record of a complete file; nothing if there is none. kData if it is damaged.
std::optional<FileRecord> read_record(const std::string& path) {
  if (!file_exists(path) || !file_exists(record_path(path))) return std::nullopt;
  const std::string text = read_own_file(record_path(path));
  const Json json = seal_of(text) == Seal::kWhole ? Json::parse(text, record_path(path)) : Json();
  if (!json.is_object() ||
      file_size(path) != static_cast<uint64_t>(json["hashes"].as_int()) * sizeof(ContentHash))
    fail(ErrorKind::kData, path,
         ": it or its .json was changed after it was written; remove both to write them again");
  const JsonNames names(json, record_path(path));
  return read_fields<FileRecord>(json);
}

/// Writes a file of hashes and its record.
class HashWriter {
 public:
  HashWriter(const std::string& path, HashesOf of) : file_(path), record_{.of = std::move(of)} {
    file_.write_back_early();
  }
  void add(const ContentHash& hash) {
    file_.write(&hash, sizeof hash);
    sum_.update(&hash, sizeof hash);
    ++record_.hashes;
  }
  void commit() {
    record_.xxh64 = sum_.digest();
    Json json = Json::Object{{"format", kFormat}, {"version", 1}};
    add_fields(json, record_);
    file_.commit();
    write_file(record_path(file_.path()), sealed(json));
  }
  uint64_t hashes() const { return record_.hashes; }

 private:
  AtomicFile file_;
  Xxh64 sum_;
  FileRecord record_;
};

/// Reads a file of hashes block by block; the file is open only while it is read. Checks its order and its
/// hash.
class HashReader {
 public:
  HashReader(std::string path, FileRecord record, size_t block)
      : path_(std::move(path)), record_(std::move(record)), block_(block) {}

  /// The next hash; nothing at the end. kData if the file is not the one that was written.
  std::optional<ContentHash> next() {
    if (at_ == buffer_.size() && !fill()) return std::nullopt;
    const ContentHash hash = buffer_[at_++];
    if (last_ && !comes_before(*last_, hash)) refuse();
    last_ = hash;
    return hash;
  }

 private:
  bool fill() {
    const uint64_t left = record_.hashes - read_;
    if (left == 0 && sum_.digest() != record_.xxh64) refuse();
    buffer_.resize(static_cast<size_t>(std::min<uint64_t>(left, block_)));
    at_ = 0;
    if (left == 0) return false;
    const size_t bytes = buffer_.size() * sizeof(ContentHash);
    ReadableFile(path_).read_at(read_ * sizeof(ContentHash), buffer_.data(), bytes);
    sum_.update(buffer_.data(), bytes);
    read_ += buffer_.size();
    return true;
  }
  [[noreturn]] void refuse() const {
    fail(ErrorKind::kData, path_,
         ": its hashes are not those that were written; remove it and its .json to write them "
         "again");
  }

  std::string path_;
  FileRecord record_;
  size_t block_;  // hashes that are read at a time
  std::vector<ContentHash> buffer_;
  size_t at_ = 0;
  uint64_t read_ = 0;
  std::optional<ContentHash> last_;
  Xxh64 sum_;
};

/// The number of shards of the run whose hashes are in the folder. Throws if there are none, or several runs.
int64_t count_of_shards(const std::string& folder) {
  namespace fs = std::filesystem;
  std::set<int64_t> counts;
  std::error_code reason;
  for (auto entry = fs::directory_iterator(folder, reason); !reason && entry != fs::directory_iterator();
       entry.increment(reason)) {
    if (entry->path().extension() != kHashes) continue;
    if (const auto record = read_record(entry->path().string())) counts.insert(record->of.shard.count);
  }
  if (counts.empty())
    fail(ErrorKind::kNoInput, folder,
         ": there are no hashes; write them with megalith-preprocess --shard I/N --dedup-write ",
         shell_word(folder));
  if (counts.size() > 1)
    fail(ErrorKind::kData, folder, ": holds hashes of ", *counts.begin(), " and of ", *counts.rbegin(),
         " shards; remove those of the wrong run");
  return *counts.begin();
}

/// The shards of the run whose hashes are in the folder. Throws unless all are there, and of one run.
std::vector<FileRecord> all_hashes(const std::string& folder) {
  const int64_t count = count_of_shards(folder);
  std::vector<FileRecord> records;
  std::vector<int64_t> missing;
  for (int64_t index = 0; index < count; ++index) {
    auto record = read_record(path_of(folder, {index, count}, kHashes));
    if (!record || record->of.shard != Shard{index, count}) {
      missing.push_back(index);
      continue;
    }
    if (!records.empty() &&
        (records[0].of.plan != record->of.plan || records[0].of.documents != record->of.documents))
      fail(ErrorKind::kData, path_of(folder, record->of.shard, kHashes), ": is of a run with other ",
           records[0].of.plan != record->of.plan ? "inputs" : "options", " than ",
           path_of(folder, records[0].of.shard, kHashes), "; remove those of the wrong run");
    records.push_back(std::move(*record));
  }
  if (!missing.empty())
    fail(ErrorKind::kData, folder, ": the hashes of ", missing.size(), " of ", count,
         " shards are missing: ", ranges_text(missing), "; write them first");
  return records;
}

/// A hash and the shard that has it. The queue's first is the lowest hash, and of equal ones that of the
/// first shard.
struct Next {
  ContentHash hash;
  size_t shard;
  bool operator<(const Next& other) const {
    return hash == other.hash ? shard > other.shard : comes_before(other.hash, hash);
  }
};

/// Writes the .seen of the shards [first, end) and returns how many hashes they have. All files are read in
/// order, side by side.
uint64_t write_seen(const std::string& folder, const std::vector<FileRecord>& all, size_t first, size_t end) {
  constexpr size_t kMemory = size_t{1} << 26, kLeast = 256, kMost = 4096;  // bytes; hashes of a block
  const size_t block = std::clamp(kMemory / sizeof(ContentHash) / all.size(), kLeast, kMost);
  std::vector<HashReader> readers;
  std::priority_queue<Next> queue;
  const auto push = [&](size_t shard) {
    if (const auto hash = readers[shard].next()) queue.push({*hash, shard});
  };
  for (size_t shard = 0; shard < all.size(); ++shard) {
    readers.emplace_back(path_of(folder, all[shard].of.shard, kHashes), all[shard], block);
    push(shard);
  }
  std::vector<std::unique_ptr<HashWriter>> writers;
  for (size_t shard = first; shard < end; ++shard)
    writers.push_back(
        std::make_unique<HashWriter>(path_of(folder, all[shard].of.shard, kSeen), all[shard].of));
  std::optional<ContentHash> last;
  while (!queue.empty()) {
    const Next next = queue.top();
    queue.pop();
    if (last == next.hash && next.shard >= first && next.shard < end)
      writers[next.shard - first]->add(next.hash);
    last = next.hash;
    push(next.shard);
  }
  uint64_t seen = 0;
  for (const auto& writer : writers) {
    seen += writer->hashes();
    writer->commit();
  }
  return seen;
}

/// Removes what step 2 found for this shard and for those after it, before which there are other documents
/// now. This shard's own is the last, so that an attempt after a kill removes the rest; step 2 writes it
/// before theirs, so that there are none without it.
void remove_seen(const std::string& folder, const Shard& shard) {
  const std::string own = path_of(folder, shard, kSeen);
  if (!file_exists(own)) return;
  std::error_code ignored;  // of a file that another process has removed
  for (int64_t index = shard.count - 1; index > shard.index; --index)
    std::filesystem::remove(path_of(folder, {index, shard.count}, kSeen), ignored);
  remove_file(own);  // and syncs the folder, which all of them are in
}

}  // namespace

void write_hashes(const std::string& folder, const HashesOf& of, std::deque<ContentHash> hashes) {
  make_directories(folder);
  remove_seen(folder, of.shard);
  std::sort(hashes.begin(), hashes.end(), comes_before);
  const auto end = std::unique(hashes.begin(), hashes.end());
  const std::string path = path_of(folder, of.shard, kHashes);
  remove_file(record_path(path));
  HashWriter writer(path, of);
  for (auto hash = hashes.begin(); hash != end; ++hash) writer.add(*hash);
  writer.commit();
}

bool has_hashes(const std::string& folder, const HashesOf& of) {
  const auto record = read_record(path_of(folder, of.shard, kHashes));
  return record && record->of == of;
}

SeenSummary find_seen(const std::string& folder) {
  constexpr size_t kAtOnce = 256;  // files that are open for writing
  const std::vector<FileRecord> all = all_hashes(folder);
  SeenSummary summary{.shards = static_cast<int64_t>(all.size())};
  for (const FileRecord& record : all) summary.documents += record.hashes;
  for (size_t first = 0; first < all.size(); first += kAtOnce)
    summary.seen += write_seen(folder, all, first, std::min(first + kAtOnce, all.size()));
  return summary;
}

std::optional<std::string> seen_digest(const std::string& folder, const HashesOf& of) {
  const auto record = read_record(path_of(folder, of.shard, kSeen));
  if (!record || !has_hashes(folder, of) || !(record->of == of)) return std::nullopt;
  return hex64(record->xxh64);
}

void read_seen(const std::string& folder, const HashesOf& of, ContentSet& set) {
  const std::string path = path_of(folder, of.shard, kSeen);
  const auto record = read_record(path);
  if (!record || !seen_digest(folder, of))
    fail(ErrorKind::kData, "--dedup-read ", folder, ": ",
         record ? "has hashes of other inputs or options" : "has no ",
         record ? "" : path.substr(path.rfind('/') + 1), "; give --dedup-write ", shell_word(folder),
         " with the same options for each shard, then megalith-data dedup ", shell_word(folder));
  constexpr size_t kBlock = 4096;
  HashReader reader(path, *record, kBlock);
  while (const auto hash = reader.next()) set.insert(*hash);
}

}  // namespace megalith
