#include "libcore/text/gpt2_files.h"

#include <cstring>
#include <numeric>
#include <optional>

#include "libcore/base/build_cache.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/text.h"
#include "libcore/base/xxh64.h"
#include "libcore/text/vocabulary.h"

namespace megalith {
namespace {

constexpr const char* kEndOfText = "<|endoftext|>";

std::vector<BytePairEncoder::Merge> read_merges(const std::string& path, const Vocabulary& vocabulary) {
  std::vector<BytePairEncoder::Merge> merges;
  const std::string contents = read_file(path);
  std::string_view rest = contents;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("#version")) continue;
    if (line.empty() && trim(rest).empty()) break;                 // blank lines at the end
    const auto where = [&] { return concat(path, ":", number); };  // slow to make, seldom wanted
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos || blank != line.rfind(' '))
      fail(ErrorKind::kData, where(), ": found ", quote(line),
           ", wanted two tokens with one blank between them");
    const std::string left(line.substr(0, blank)), right(line.substr(blank + 1));
    const auto l = vocabulary.find(left), r = vocabulary.find(right), joined = vocabulary.find(left + right);
    merges.push_back(l && r && joined ? BytePairEncoder::Merge{*l, *r, *joined}
                                      : vocabulary.merge(left, right, where()));  // says what is unknown
  }
  return merges;
}

/// What all models of these files have in common.
void finish(ByteLevelModel& model, int32_t eod) {
  model.name = "GPT2BPETokenizer";
  model.eod = eod;
  model.normalized_added = {AddedToken{.text = kEndOfText, .id = eod}};
}

// Smaller files are read as fast as what would be kept of them.
constexpr size_t kWorthKeeping = size_t{1} << 18;

uint64_t source_hash(std::string_view vocab, std::string_view merges) {
  const uint64_t sizes[] = {vocab.size(), merges.size()};
  Xxh64 hash;
  hash.update(sizes, sizeof sizes);
  hash.update(vocab.data(), vocab.size());
  hash.update(merges.data(), merges.size());
  return hash.digest();
}

/// Puts arrays of plain numbers one after the other, each behind its number of elements.
class Packer {
 public:
  template <class T>
  void add(std::span<const T> values) {
    const uint64_t count = values.size();
    out_.append(reinterpret_cast<const char*>(&count), sizeof count);
    out_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view packed) : rest_(packed) {}
  template <class T>
  std::vector<T> array() {
    uint64_t count = 0;
    std::vector<T> values;
    if (!read(&count, sizeof count) || count > rest_.size() / sizeof(T)) {
      whole_ = false;
      return values;
    }
    values.resize(count);
    read(values.data(), count * sizeof(T));
    return values;
  }
  bool whole() const { return whole_ && rest_.empty(); }

 private:
  bool read(void* to, size_t bytes) {
    if (bytes > rest_.size()) return whole_ = false;
    if (bytes > 0) std::memcpy(to, rest_.data(), bytes);
    rest_.remove_prefix(bytes);
    return true;
  }
  std::string_view rest_;
  bool whole_ = true;
};

std::string pack(const ByteLevelModel& model) {
  std::vector<uint32_t> sizes;
  std::string bytes;
  for (const std::string& token : model.tokens) {
    sizes.push_back(static_cast<uint32_t>(token.size()));
    bytes += token;
  }
  Packer packer;
  packer.add(std::span<const uint32_t>(sizes));
  packer.add(std::span<const char>(bytes));
  packer.add(std::span<const int32_t>(model.byte_ids));
  packer.add(std::span<const BytePairEncoder::Merge>(model.merges));
  packer.add(std::span<const PieceSeed>(model.seeds));
  packer.add(std::span<const int32_t>(&model.eod, 1));
  packer.add(std::span<const char>(model.hash));
  return packer.take();
}

/// Nothing when the parts do not fit together.
std::optional<ByteLevelModel> unpack(std::string_view packed) {
  Unpacker unpacker(packed);
  const auto sizes = unpacker.array<uint32_t>();
  const auto bytes = unpacker.array<char>();
  const auto byte_ids = unpacker.array<int32_t>();
  ByteLevelModel model;
  model.merges = unpacker.array<BytePairEncoder::Merge>();
  model.seeds = unpacker.array<PieceSeed>();
  const auto eod = unpacker.array<int32_t>();
  const auto hash = unpacker.array<char>();
  const uint64_t total = std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});
  if (!unpacker.whole() || total != bytes.size() || byte_ids.size() != model.byte_ids.size() ||
      eod.size() != 1)
    return std::nullopt;
  const char* at = bytes.data();
  model.tokens.reserve(sizes.size());
  for (const uint32_t size : sizes) {
    model.tokens.emplace_back(at, size);
    at += size;
  }
  std::copy(byte_ids.begin(), byte_ids.end(), model.byte_ids.begin());
  model.hash.assign(hash.begin(), hash.end());
  finish(model, eod[0]);
  return model;
}

}  // namespace

ByteLevelModel read_gpt2_files(const std::string& vocab, const std::string& merges) {
  const Vocabulary vocabulary(Json::load(vocab), vocab);
  ByteLevelModel model;
  vocabulary.fill(model);
  model.merges = read_merges(merges, vocabulary);
  const auto eod = vocabulary.find(kEndOfText);
  if (!eod)
    fail(ErrorKind::kData, vocab, ": no token ", quote(kEndOfText),
         ", which ends a document; add it with the next free id");
  finish(model, *eod);
  return model;
}

std::unique_ptr<ByteLevelTokenizer> make_gpt2_tokenizer(const std::string& vocab, const std::string& merges) {
  const std::string vocab_text = read_file(vocab), merges_text = read_file(merges);
  if (vocab_text.size() + merges_text.size() < kWorthKeeping)
    return std::make_unique<ByteLevelTokenizer>(read_gpt2_files(vocab, merges));
  const CachedFile cached("gpt2-1", source_hash(vocab_text, merges_text));
  if (const std::optional<std::string> packed = cached.load())
    if (std::optional<ByteLevelModel> model = unpack(*packed))
      return std::make_unique<ByteLevelTokenizer>(std::move(*model));
  ByteLevelModel model = read_gpt2_files(vocab, merges);
  auto tokenizer = std::make_unique<ByteLevelTokenizer>(model);
  model.seeds.assign(tokenizer->seeds().begin(), tokenizer->seeds().end());
  model.hash = tokenizer->hash();
  cached.store(pack(model));
  return tokenizer;
}

}  // namespace megalith
