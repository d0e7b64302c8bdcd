#include "libcore/data/indexed/token_check.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <optional>
#include <type_traits>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/machine/proc.h"
#include "libcore/base/text.h"
#include "libcore/data/indexed/sidecar.h"
#include "libcore/hash/sha256.h"
#include "libcore/io/cache/build_cache.h"
#include "libcore/threads/beside.h"

namespace megalith {
namespace {

// The number of tokens that a thread takes at a time: few enough that progress is visible and that the mapped
// pages of all threads are little memory, enough that threads rarely contend.
constexpr int64_t kStep = int64_t{1} << 20;

/// The range of ids among tokens [begin, end) of the .bin. The elements are aligned, since the mapping begins
/// at a page. Gives back the pages.
TokenRange range_of(const IndexedDataset& data, int64_t begin, int64_t end) {
  return with_type(data.dtype(), [&](auto type) -> TokenRange {
    using T = decltype(type);
    const T* ids = reinterpret_cast<const T*>(data.bin().data());
    T min = ids[begin], max = ids[begin];
    for (int64_t i = begin; i < end; ++i) {
      min = std::min(min, ids[i]);
      max = std::max(max, ids[i]);
    }
    data.bin().forget(static_cast<size_t>(begin) * sizeof(T), static_cast<size_t>(end - begin) * sizeof(T));
    return {static_cast<int64_t>(min), static_cast<int64_t>(max)};
  });
}

TokenRange joined(TokenRange a, TokenRange b) {
  if (a == TokenRange{}) return b;
  if (b == TokenRange{}) return a;
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}

/// The range of ids according to the sidecar. Returns nothing if there is no sidecar, or if its counts differ
/// from the dataset's, so that it must belong to another one. The minimum is taken to be 0, since tokenizers
/// give no negative ids.
std::optional<TokenRange> range_in_sidecar(const IndexedDataset& data) {
  const auto sidecar = read_sidecar(data.prefix());
  if (!sidecar) return std::nullopt;
  if (sidecar->tokens != data.tokens() || sidecar->sequences != data.sequences() ||
      sidecar->documents != data.documents()) {
    warn(sidecar_path(data.prefix()), ": describes ", sidecar->tokens, " tokens in ", sidecar->documents,
         " documents, the dataset has ", data.tokens(), " in ", data.documents(), "; it is not used");
    return std::nullopt;
  }
  return TokenRange{0, sidecar->max_token_id};
}

TokenRange scanned_or_cached(const IndexedDataset& data, const std::string& cache_folder,
                             const WorkCheck& check) {
  if (cache_folder.empty()) return scan_tokens(data, check);
  const CachedFile file(cache_folder, "token-range", 1, sha256_hex(data.file_key()));
  TokenRange range;
  if (const auto kept = file.load(); kept && kept->text().size() == sizeof range) {
    std::memcpy(&range, kept->text().data(), sizeof range);
    return range;
  }
  range = scan_tokens(data, check);
  file.store({reinterpret_cast<const char*>(&range), sizeof range});
  return range;
}

/// The index of the first token whose id is outside [0, vocab_size).
int64_t first_outside(const IndexedDataset& data, int64_t vocab_size) {
  const TokenSpan ids = data.all_tokens();
  for (int64_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || ids[i] >= vocab_size) return i;
  fail(ErrorKind::kData, sidecar_path(data.prefix()),
       ": mentions a token id that the dataset does not hold; remove it");
}

[[noreturn]] void refuse(const IndexedDataset& data, int64_t vocab_size) {
  int64_t token = first_outside(data, vocab_size), sequence = 0;
  const int64_t id = data.all_tokens()[token];
  while (token >= data.sequence_length(sequence)) token -= data.sequence_length(sequence++);
  fail(
      ErrorKind::kData, data.prefix(), ": document ", data.document_of(sequence), " (sequence ", sequence,
      ", token ", token, ") holds the id ", id, ", the vocabulary has ", vocab_size, " (0 to ",
      vocab_size - 1,
      "); the dataset was made with another tokenizer: preprocess the text with this one, or name the other");
}

/// Describes a tokenizer: "GPT2BPETokenizer of 4,000 ids (1a2b3c4d)". The beginning of the hash tells
/// tokenizers of equal name apart.
std::string described(const std::string& name, int64_t ids, const std::string& hash) {
  constexpr size_t kDigits = 8;
  return concat(name, ids > 0 ? concat(" of ", format_count(ids), " ids") : "", " (", hash.substr(0, kDigits),
                ")");
}

}  // namespace

TokenizerCheck::TokenizerCheck(const RunTokenizer& run, bool allowed)
    : allowed_(allowed),
      hash_(run.hash),
      known_from_(concat("this run's is ", described(run.name, 0, run.hash))) {}

void TokenizerCheck::complain(const std::string& found, const std::string& remedy) const {
  const std::string why = found + ": the same ids stand for different text";
  if (!allowed_)
    fail(ErrorKind::kUsage, why, "; ", remedy, ", or --allow-tokenizer-mismatch to train anyway");
  warn(why);
}

void TokenizerCheck::check_model(const std::string& checkpoint, const RunTokenizer& model) {
  const std::string trained_with = described(model.name, 0, model.hash);
  if (hash_.empty()) {
    hash_ = model.hash;
    known_from_ = concat("the model in ", checkpoint, " with ", trained_with);
  } else if (hash_ != model.hash) {
    complain(concat(checkpoint, ": was trained with ", trained_with, ", ", known_from_),
             "give the tokenizer that it was trained with");
  }
}

void TokenizerCheck::check(std::span<const IndexedDataset> datasets) {
  for (const IndexedDataset& data : datasets) {
    const auto sidecar = read_sidecar(data.prefix());
    if (!sidecar || sidecar->tokenizer_hash.empty()) continue;
    const std::string made_with = described(sidecar->tokenizer, sidecar->vocab_size, sidecar->tokenizer_hash);
    if (hash_.empty()) {
      hash_ = sidecar->tokenizer_hash;
      known_from_ = concat(data.prefix(), " with ", made_with);
    }
    if (sidecar->tokenizer_hash == hash_) continue;
    complain(concat(data.prefix(), ": was made with ", made_with, ", ", known_from_),
             "give the tokenizer that it was made with, or preprocess the text again");
  }
}

TokenRange scan_tokens(const IndexedDataset& data, const WorkCheck& check) {
  const int64_t steps = (data.tokens() + kStep - 1) / kStep;
  const auto workers = static_cast<size_t>(std::min<int64_t>(usable_cpus(), std::max<int64_t>(steps, 1)));
  std::vector<TokenRange> ranges(workers);
  std::atomic<int64_t> next{0};
  Progress progress("checking token ids of " + data.prefix(), data.tokens(), "tokens");
  const auto work = [&](size_t worker) {
    for (int64_t step = next++; step < steps; step = next++) {
      if (check) check();
      const int64_t end = std::min((step + 1) * kStep, data.tokens());
      ranges[worker] = joined(ranges[worker], range_of(data, step * kStep, end));
      if (worker == 0) progress.advance_to(end);
    }
  };
  run_beside(workers, work);
  TokenRange all;
  for (const TokenRange& range : ranges) all = joined(all, range);
  return all;
}

void check_token_ids(const IndexedDataset& data, int64_t vocab_size, const std::string& cache_folder,
                     const WorkCheck& check) {
  const auto in_sidecar = range_in_sidecar(data);
  const TokenRange range = in_sidecar ? *in_sidecar : scanned_or_cached(data, cache_folder, check);
  if (range.min < 0 || range.max >= vocab_size) refuse(data, vocab_size);
}

}  // namespace megalith
