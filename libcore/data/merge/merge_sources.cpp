#include "libcore/data/merge/merge_sources.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <set>
#include <string_view>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

/// The regular files in a folder, as paths relative to it; with `recursive`, also in all folders below.
std::vector<fs::path> files_of(const fs::path& folder, bool recursive) {
  std::vector<fs::path> files;
  std::error_code reason;
  const auto add = [&](const fs::directory_entry& entry) {
    if (entry.is_regular_file()) files.push_back(entry.path().lexically_relative(folder));
  };
  if (recursive)
    for (const auto& entry : fs::recursive_directory_iterator(folder, reason)) add(entry);
  else
    for (const auto& entry : fs::directory_iterator(folder, reason)) add(entry);
  if (reason) fail(ErrorKind::kIo, folder.string(), ": cannot read the folder: ", reason.message());
  return files;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Removes the digits at the front of `text` and returns them without leading zeros. Two numbers in this form
/// that have equal length compare as texts do.
std::string_view take_number(std::string_view& text) {
  size_t zeros = 0, end = 0;
  while (zeros < text.size() && text[zeros] == '0') ++zeros;
  for (end = zeros; end < text.size() && is_digit(text[end]);) ++end;
  const std::string_view number = text.substr(zeros, end - zeros);
  text.remove_prefix(end);
  return number;
}

/// Whether `first` comes before `second` when digits are compared as numbers: part_2 before part_10. Ties
/// (p01, p1) are ordered by code points.
bool natural_less(const std::string& first, const std::string& second) {
  std::string_view a = first, b = second;
  while (!a.empty() && !b.empty()) {
    if (is_digit(a[0]) && is_digit(b[0])) {
      const std::string_view x = take_number(a), y = take_number(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else if (a[0] != b[0]) {
      return static_cast<unsigned char>(a[0]) < static_cast<unsigned char>(b[0]);
    } else {
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  if (a.empty() != b.empty()) return a.empty();
  return first < second;
}

/// The prefixes of all datasets that config.inputs names, in order. A folder is replaced by the datasets in
/// it.
std::vector<std::string> prefixes_of(const MergeConfig& config) {
  if (config.inputs.empty()) fail(ErrorKind::kUsage, "--input names no dataset");
  std::vector<std::string> prefixes;
  for (const std::string& input : config.inputs) {
    if (!fs::is_directory(input)) {
      prefixes.push_back(input);
      continue;
    }
    const std::vector<std::string> found = find_datasets(
        input, config.recursive, config.natural_sort ? PrefixOrder::kNatural : PrefixOrder::kCodePoint);
    prefixes.insert(prefixes.end(), found.begin(), found.end());
  }
  return prefixes;
}

void check_output(const MergeConfig& config, const std::vector<std::string>& prefixes) {
  const fs::path output = fs::weakly_canonical(config.output_prefix + ".bin");
  for (const std::string& prefix : prefixes)
    if (fs::weakly_canonical(prefix + ".bin") == output)
      fail(ErrorKind::kUsage, "--output-prefix ", quote(config.output_prefix), " is one of the inputs (",
           quote(prefix), "); write to another folder, or move it away first");
}

/// The sidecar of a source. Returns nothing if there is none, or if its counts do not match the dataset.
std::optional<Sidecar> sidecar_of(const MergeSource& source, bool needed) {
  auto sidecar = read_sidecar(source.prefix);
  if (!sidecar) return std::nullopt;
  const int64_t documents = source.header.entries - 1,
                tokens = static_cast<int64_t>(source.bin_size / size_of(source.header.dtype));
  const bool counts_agree = sidecar->documents == documents && sidecar->tokens == tokens &&
                            sidecar->sequences == source.header.sequences;
  const bool hashed = !sidecar->idx_hash.empty();
  if (counts_agree && (!hashed || cover(sidecar->bin_parts, source.bin_size))) return sidecar;
  if (needed)
    fail(ErrorKind::kData, sidecar_path(source.prefix), ": describes ", sidecar->tokens, " tokens in ",
         sidecar->documents, " documents, the dataset has ", tokens, " in ", documents,
         "; it was cut off or changed: do this shard again");
  warn(sidecar_path(source.prefix), ": describes ", sidecar->tokens, " tokens in ", sidecar->documents,
       " documents, the dataset has ", tokens, " in ", documents,
       counts_agree ? "; its hashes cover a different number of bytes, so it is not used"
                    : "; it is not used");
  return std::nullopt;
}

MergeSource look_at(const std::string& prefix, bool sidecar_needed) {
  MergeSource source{.prefix = existing_dataset(prefix)};
  const ReadableFile idx(prefix + ".idx");
  std::array<std::byte, kIndexedHeaderBytes> head{};
  const size_t held = std::min<uint64_t>(head.size(), idx.size());
  idx.read_at(0, head.data(), held);
  source.header = read_index_header({head.data(), held}, idx.size(), idx.path());
  source.bin_size = ReadableFile(prefix + ".bin").size();
  source.sidecar = sidecar_of(source, sidecar_needed);
  return source;
}

void check_hashes_known(const MergeSource& source) {
  if (source.sidecar && !source.sidecar->idx_hash.empty()) return;
  fail(ErrorKind::kData, sidecar_path(source.prefix), ": ",
       source.sidecar ? "holds no hashes" : "there is no such sidecar",
       ", so --verify has nothing to compare the dataset with; leave --verify out, or preprocess again");
}

/// The smallest integer type that holds all values of both types.
IndexedDType wider(IndexedDType a, IndexedDType b) {
  const auto min_of = [](IndexedDType t) {
    return with_type(
        t, [](auto type) { return static_cast<int64_t>(std::numeric_limits<decltype(type)>::lowest()); });
  };
  const auto max_of = [](IndexedDType t) {
    return with_type(
        t, [](auto type) { return static_cast<int64_t>(std::numeric_limits<decltype(type)>::max()); });
  };
  using enum IndexedDType;
  for (const IndexedDType t : {kU8, kI8, kU16, kI16, kI32})
    if (min_of(t) <= std::min(min_of(a), min_of(b)) && max_of(t) >= std::max(max_of(a), max_of(b))) return t;
  return kI64;
}

void check_same_tokenizer(const MergeSource& a, const MergeSource& b) {
  const Sidecar &x = *a.sidecar, &y = *b.sidecar;
  // Equal hashes mean equal ids, even if the two tokenizers have different names.
  const bool hashed = !x.tokenizer_hash.empty() && !y.tokenizer_hash.empty();
  if (hashed ? x.tokenizer_hash == y.tokenizer_hash
             : x.tokenizer == y.tokenizer && x.vocab_size == y.vocab_size)
    return;
  fail(ErrorKind::kData, sidecar_path(b.prefix), ": made with ", y.tokenizer, " of ", y.vocab_size, " ids (",
       y.tokenizer_hash, "), ", sidecar_path(a.prefix), " with ", x.tokenizer, " of ", x.vocab_size, " ids (",
       x.tokenizer_hash, "); preprocess both with the same tokenizer");
}

}  // namespace

std::vector<std::string> find_datasets(const std::string& folder, bool recursive, PrefixOrder order) {
  /// std::set orders by unsigned bytes, which is the order of code points in UTF-8.
  std::set<std::string> prefixes;
  for (const fs::path& file : files_of(folder, recursive)) {
    const std::string ending = file.extension().string(), path = (folder / file).string();
    const std::string prefix = path.substr(0, path.size() - ending.size());
    const bool bin = file_exists(prefix + ".bin"), idx = file_exists(prefix + ".idx");
    if (ending == ".json" && bin && idx) continue;
    if (ending != ".bin" && ending != ".idx")
      fail(ErrorKind::kData, path,
           ": is not part of a dataset; wanted only .bin/.idx pairs (and their .json) in ", quote(folder),
           ": move it away");
    if (!bin || !idx)
      fail(ErrorKind::kData, path, ": there is no ", prefix, bin ? ".idx" : ".bin",
           " next to it; run preprocess again, or move the file away");
    prefixes.insert(prefix);
  }
  if (prefixes.empty())
    fail(ErrorKind::kNoInput, folder, ": holds no .bin/.idx pair",
         recursive ? "" : "; for datasets in folders below it give --recursive");
  std::vector<std::string> sorted(prefixes.begin(), prefixes.end());
  if (order == PrefixOrder::kNatural) std::sort(sorted.begin(), sorted.end(), natural_less);
  return sorted;
}

std::vector<MergeSource> look_at_sources(const MergeConfig& config) {
  const std::vector<std::string> prefixes = prefixes_of(config);
  check_output(config, prefixes);
  std::vector<MergeSource> sources;
  sources.reserve(prefixes.size());
  for (const std::string& prefix : prefixes) {
    sources.push_back(look_at(prefix, config.sidecars_needed));
    if (config.verify) check_hashes_known(sources.back());
  }
  return sources;
}

IndexedDType joined_dtype(const std::vector<MergeSource>& sources, bool widen) {
  const MergeSource& first = sources.front();
  IndexedDType dtype = first.header.dtype;
  for (const MergeSource& source : sources) {
    if (source.header.dtype == dtype) continue;
    const bool floating = is_floating(source.header.dtype) || is_floating(dtype);
    if (!widen || floating)
      fail(ErrorKind::kData, source.prefix, ": tokens are ", name_of(source.header.dtype),
           ", those of the datasets before it ", name_of(dtype),
           floating ? "; floating-point numbers are not token ids"
                    : "; they were made with different tokenizers: preprocess them with the same one, or "
                      "give --widen if the ids mean the same");
    dtype = wider(dtype, source.header.dtype);
  }
  return dtype;
}

std::optional<Sidecar> joined_sidecar(const std::vector<MergeSource>& sources) {
  const auto has_one = [](const MergeSource& source) { return source.sidecar.has_value(); };
  if (!std::all_of(sources.begin(), sources.end(), has_one)) return std::nullopt;
  Sidecar joined = *sources.front().sidecar;
  for (const MergeSource& source : sources) {
    check_same_tokenizer(sources.front(), source);
    joined.max_token_id = std::max(joined.max_token_id, source.sidecar->max_token_id);
    if (!(joined.options == source.sidecar->options)) joined.options = Json::object();
  }
  joined.shard.reset();
  joined.idx_hash.clear();
  joined.bin_parts.clear();
  return joined;
}

}  // namespace megalith
