#include "libcore/data/merge/merge.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/config/thread_limit.h"
#include "libcore/data/indexed/content.h"
#include "libcore/data/indexed/dataset_pair.h"
#include "libcore/data/merge/merge_sources.h"

namespace megalith {
namespace {

/// The number of array elements that are in memory at a time: 64 KiB of int64.
constexpr int64_t kAtOnce = 8192;

template <class T>
std::byte* bytes_of(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

/// Writes the joined .idx. Its counts are known in advance, so that each array of each source can be written
/// to its final place at once, and nothing is kept in memory.
class IndexJoiner {
 public:
  IndexJoiner(AtomicFile& out, const IndexHeader& header) : out_(out), header_(header) { write_header(); }

  /// Checks a source's arrays and appends them to those of the earlier sources. Calls `progress` with the
  /// number of bytes that were read since its last call.
  void add(const MergeSource& source, const std::function<void(uint64_t)>& progress) {
    const ReadableFile idx(source.prefix + ".idx");
    IndexChecker checker(source.prefix, source.header, source.bin_size);
    for (int64_t i = 0; i < source.header.sequences; i += kAtOnce) {
      const int64_t n = std::min(kAtOnce, source.header.sequences - i);
      add_sequences(idx, source.header, {i, n}, checker);
      progress(12 * static_cast<uint64_t>(n));
    }
    checker.end_of_sequences();
    for (int64_t i = 0; i < source.header.entries; i += kAtOnce) {
      const int64_t n = std::min(kAtOnce, source.header.entries - i);
      add_documents(idx, source.header, {i, n}, checker);
      progress(8 * static_cast<uint64_t>(n));
    }
    checker.end_of_documents();
    first_sequence_ += source.header.sequences;
    first_entry_ += source.header.entries - 1;
    tokens_ += checker.tokens();
  }
  int64_t tokens() const { return tokens_; }

 private:
  struct Range {
    int64_t first, n;
  };

  void write_header() {
    out_.write(kIndexedMagic.data(), kIndexedMagic.size());
    const auto put = [&](auto value) { out_.write(&value, sizeof value); };
    put(kIndexedVersion);
    put(static_cast<uint8_t>(header_.dtype));
    put(static_cast<uint64_t>(header_.sequences));
    put(static_cast<uint64_t>(header_.entries));
  }

  void add_sequences(const ReadableFile& idx, const IndexHeader& from, Range range, IndexChecker& checker) {
    const auto first = static_cast<uint64_t>(range.first), n = static_cast<size_t>(range.n);
    idx.read_at(from.lengths_at() + 4 * first, lengths_.data(), 4 * n);
    idx.read_at(from.pointers_at() + 8 * first, numbers_.data(), 8 * n);
    checker.sequences(bytes_of(lengths_), bytes_of(numbers_), range.n);
    const auto in = static_cast<int64_t>(size_of(from.dtype)),
               out = static_cast<int64_t>(size_of(header_.dtype));
    const int64_t base = tokens_ * out;
    if (in == out)
      for (size_t i = 0; i < n; ++i) numbers_[i] += base;
    else
      for (size_t i = 0; i < n; ++i) numbers_[i] = base + numbers_[i] / in * out;
    const uint64_t place = static_cast<uint64_t>(first_sequence_) + first;
    out_.write_at(header_.lengths_at() + 4 * place, lengths_.data(), 4 * n);
    out_.write_at(header_.pointers_at() + 8 * place, numbers_.data(), 8 * n);
  }

  void add_documents(const ReadableFile& idx, const IndexHeader& from, Range range, IndexChecker& checker) {
    const auto first = static_cast<uint64_t>(range.first), n = static_cast<size_t>(range.n);
    idx.read_at(from.documents_at() + 8 * first, numbers_.data(), 8 * n);
    checker.documents(bytes_of(numbers_), range.n);
    for (size_t i = 0; i < n; ++i) numbers_[i] += first_sequence_;
    // Entry 0 of the source is written, too: it overwrites the last entry of the previous source with the
    // same number.
    out_.write_at(header_.documents_at() + 8 * (static_cast<uint64_t>(first_entry_) + first), numbers_.data(),
                  8 * n);
  }

  AtomicFile& out_;
  IndexHeader header_;
  std::vector<int32_t> lengths_ = std::vector<int32_t>(kAtOnce);
  std::vector<int64_t> numbers_ = std::vector<int64_t>(kAtOnce);
  int64_t first_sequence_ = 0, first_entry_ = 0, tokens_ = 0;  // where the next source begins
};

/// Converts a source's ids to another type, appends them to the .bin, and computes their hash.
class Widener {
 public:
  Widener(AtomicFile& out, IndexedDType from, IndexedDType to) : out_(out), from_(from), to_(to) {}

  /// `ids` must hold a whole number of tokens.
  void add(std::span<const std::byte> ids) {
    with_type(from_,
              [&](auto in) { with_type(to_, [&](auto out) { convert<decltype(in), decltype(out)>(ids); }); });
    out_.write(buffer_.data(), buffer_.size());
    hash_.update(buffer_.data(), buffer_.size());
    bytes_ += buffer_.size();
  }
  ContentPart part() const { return {bytes_, hex64(hash_.digest())}; }

 private:
  template <class In, class Out>
  void convert(std::span<const std::byte> ids) {
    const size_t n = ids.size() / sizeof(In);
    buffer_.resize(n * sizeof(Out));
    for (size_t i = 0; i < n; ++i) {
      const auto id = static_cast<Out>(load_unaligned<In>(ids.data(), static_cast<int64_t>(i)));
      std::memcpy(buffer_.data() + i * sizeof(Out), &id, sizeof id);
    }
  }

  AtomicFile& out_;
  IndexedDType from_, to_;
  std::vector<std::byte> buffer_;
  Xxh64 hash_;
  uint64_t bytes_ = 0;
};

/// One run of merge_datasets().
class Merge {
 public:
  explicit Merge(const MergeConfig& config)
      : config_(config),
        sources_(look_at_sources(config)),
        header_(joined_header()),
        sidecar_(joined_sidecar(sources_)),
        files_(config.output_prefix),
        progress_("merging", total_bytes(), "B") {}

  MergeSummary run() {
    IndexJoiner index(files_.idx, header_);
    for (const MergeSource& source : sources_) {
      if (config_.verify) verify_index(source);
      index.add(source, [&](uint64_t bytes) { advance(bytes, source); });
    }
    if (copies_alone())
      copy_tokens();
    else
      for (const MergeSource& source : sources_) add_tokens(source);
    if (sidecar_) {
      describe(index.tokens());
      files_.add_sidecar(*sidecar_);
    }
    files_.commit();
    return {static_cast<int64_t>(sources_.size()), header_.entries - 1, header_.sequences, index.tokens()};
  }

 private:
  IndexHeader joined_header() const {
    IndexHeader joined{.dtype = joined_dtype(sources_, config_.widen), .sequences = 0, .entries = 1};
    for (const MergeSource& source : sources_) {
      joined.sequences += source.header.sequences;
      joined.entries += source.header.entries - 1;
    }
    return joined;
  }

  int64_t total_bytes() const {
    uint64_t total = 0;
    for (const MergeSource& source : sources_)
      total += source.bin_size + source.header.file_size() * (config_.verify ? 2 : 1);
    return static_cast<int64_t>(total);
  }

  void advance(uint64_t bytes, const MergeSource& source) {
    done_ += static_cast<int64_t>(bytes);
    progress_.advance_to(done_, source.prefix);
  }

  void verify_index(const MergeSource& source) {
    const ReadableFile idx(source.prefix + ".idx");
    const std::vector<ContentPart> whole = {{idx.size(), source.sidecar->idx_hash}};
    ContentChecker checker(idx.path(), whole, idx.size());
    idx.stream([&](std::span<const std::byte> block) {
      checker.update(block.data(), block.size());
      advance(block.size(), source);
    });
  }

  /// Whether no byte of a token passes through memory, so that several threads may copy.
  bool copies_alone() const {
    return config_.jobs > 1 && !config_.verify &&
           std::all_of(sources_.begin(), sources_.end(),
                       [&](const MergeSource& source) { return source.header.dtype == header_.dtype; });
  }

  void copy_tokens() {
    std::vector<FileWriter::Piece> pieces;
    uint64_t at = 0;
    for (const MergeSource& source : sources_)
      pieces.push_back({source.prefix + ".bin", std::exchange(at, at + source.bin_size), source.bin_size});
    files_.bin.fill(pieces, static_cast<size_t>(config_.jobs), [&](size_t piece, uint64_t bytes) {
      const std::lock_guard lock(progress_mutex_);
      advance(bytes, sources_[piece]);
    });
    for (const MergeSource& source : sources_) keep_parts(source);
  }

  void add_tokens(const MergeSource& source) {
    const ReadableFile bin(source.prefix + ".bin");
    if (bin.size() != source.bin_size)
      fail(ErrorKind::kData, bin.path(), ": is ", bin.size(), " bytes, but a moment ago it was ",
           source.bin_size, "; it was changed in between");
    const bool widened = source.header.dtype != header_.dtype;
    if (widened || config_.verify) return add_tokens_through_memory(source, bin, widened);
    uint64_t before = 0;
    files_.bin.append(bin, 0, bin.size(),
                      [&](uint64_t done) { advance(done - std::exchange(before, done), source); });
    keep_parts(source);
  }

  /// Copies a source's tokens through memory, to widen them or to verify their hashes. The bytes that are
  /// verified are the ones that are written, so a source that changes during the merge is detected.
  void add_tokens_through_memory(const MergeSource& source, const ReadableFile& bin, bool widened) {
    std::optional<ContentChecker> checker;
    std::optional<Widener> widener;
    if (config_.verify) checker.emplace(bin.path(), source.sidecar->bin_parts, bin.size());
    if (widened) widener.emplace(files_.bin, source.header.dtype, header_.dtype);
    bin.stream([&](std::span<const std::byte> block) {
      if (checker) checker->update(block.data(), block.size());
      if (widener)
        widener->add(block);
      else
        files_.bin.write(block.data(), block.size());
      advance(block.size(), source);
    });
    if (!widener)
      keep_parts(source);
    else if (sidecar_)
      sidecar_->bin_parts.push_back(widener->part());
  }

  void keep_parts(const MergeSource& source) {
    if (!sidecar_) return;
    const std::vector<ContentPart>& parts = source.sidecar->bin_parts;
    sidecar_->bin_parts.insert(sidecar_->bin_parts.end(), parts.begin(), parts.end());
  }

  /// Fills in the counts and hashes of the joined sidecar. The arrays of the .idx were not written in order,
  /// so the .idx is read back for its hash. If a source's sidecar has no hashes, the joined one gets none.
  void describe(int64_t tokens) {
    sidecar_->documents = header_.entries - 1;
    sidecar_->sequences = header_.sequences;
    sidecar_->tokens = tokens;
    const auto has_none = [](const MergeSource& source) { return source.sidecar->idx_hash.empty(); };
    if (std::any_of(sources_.begin(), sources_.end(), has_none)) return sidecar_->bin_parts.clear();
    sidecar_->idx_hash = index_hash();
  }

  std::string index_hash() {
    Xxh64 hash;
    std::vector<std::byte> block(kWritePiece);
    for (uint64_t at = 0; at < header_.file_size(); at += block.size()) {
      const size_t n = std::min<uint64_t>(block.size(), header_.file_size() - at);
      files_.idx.read_back(at, block.data(), n);
      hash.update(block.data(), n);
    }
    return hex64(hash.digest());
  }

  const MergeConfig& config_;
  std::vector<MergeSource> sources_;
  IndexHeader header_;
  std::optional<Sidecar> sidecar_;
  DatasetPair files_;
  Progress progress_;
  std::mutex progress_mutex_;  // guards progress_ and done_ while several threads copy
  int64_t done_ = 0;
};

}  // namespace

void MergeConfig::validate(Problems& problems) const {
  if (inputs.empty() && shards.empty()) problems.missing(Opt{"input"}, ", or ", Opt{"shards"});
  if (!inputs.empty() && !shards.empty())
    problems.add(Opt{"input"}, " and ", Opt{"shards"}, " contradict each other; leave one of them out");
  if (shards.empty() && !rejects.empty()) problems.add(Opt{"rejects"}, " needs ", Opt{"shards"});
  require_possible_threads(jobs, "jobs", problems);
  for (const auto& [given, name] : {std::pair(recursive, "recursive"),
                                    std::pair(natural_sort, "natural-sort"), std::pair(widen, "widen")})
    if (given && !shards.empty())
      problems.add(Opt{name}, " and ", Opt{"shards"}, " contradict each other; leave the first out");
}

MergeSummary merge_datasets(const MergeConfig& config) {
  const MergeSummary summary = Merge(config).run();
  log("Merged ", format_count(summary.datasets), " datasets into ", printable(config.output_prefix),
      ".bin and .idx: ", format_count(summary.documents), " documents, ", format_count(summary.tokens),
      " tokens");
  return summary;
}

}  // namespace megalith
