#include "libcore/train/data/fim.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/random.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"

namespace megalith {

SampleDraws::SampleDraws(int64_t seed, uint32_t part, int64_t sample)
    : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(static_cast<uint64_t>(seed) >> 32)},
      counter_{0, part, static_cast<uint32_t>(sample),
               static_cast<uint32_t>(static_cast<uint64_t>(sample) >> 32)} {}

std::array<uint64_t, 2> SampleDraws::next() {
  const std::array<uint32_t, 4> bits = philox(counter_, key_);
  ++counter_[0];
  return {bits[0] | uint64_t{bits[1]} << 32, bits[2] | uint64_t{bits[3]} << 32};
}

bool SampleDraws::happens(double probability) {
  return static_cast<double>(next()[0] >> 11) * 0x1p-53 < probability;
}

// The remainder of 64 random bits is uneven by less than 2^-32 for texts of less than 2^32 characters.
std::array<int64_t, 2> SampleDraws::two_up_to(int64_t max) {
  const std::array<uint64_t, 2> bits = next();
  const auto count = static_cast<uint64_t>(max) + 1;
  return {static_cast<int64_t>(bits[0] % count), static_cast<int64_t>(bits[1] % count)};
}

namespace {

/// A text that is cut at two of its characters.
struct Cut {
  std::string_view prefix, middle, suffix;
};

size_t byte_of_character(std::string_view utf8, int64_t character) {
  size_t at = 0;
  for (; character > 0; --character) {
    ++at;
    while (at < utf8.size() && continues_character(utf8[at])) ++at;
  }
  return at;
}

Cut cut(std::string_view text, std::array<int64_t, 2> characters) {
  std::sort(characters.begin(), characters.end());
  const size_t first = byte_of_character(text, characters[0]);
  const size_t second = first + byte_of_character(text.substr(first), characters[1] - characters[0]);
  return {text.substr(0, first), text.substr(first, second - first), text.substr(second)};
}

/// Calls `part` for what lies before each `mark`, unless that is empty, and adds its result and the mark to
/// the ids that are returned; then `part` for what follows the last mark.
template <class Part>
std::vector<int32_t> between(std::span<const int32_t> ids, int32_t mark, const Part& part) {
  std::vector<int32_t> out;
  const auto add = [&](std::span<const int32_t> some) {
    const std::vector<int32_t> changed = part(some);
    out.insert(out.end(), changed.begin(), changed.end());
  };
  size_t begin = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != mark) continue;
    if (i > begin) {
      add(ids.subspan(begin, i - begin));
      out.push_back(mark);
    }
    begin = i + 1;
  }
  add(ids.subspan(begin));
  return out;
}

}  // namespace

FimPermutation::FimPermutation(const FimConfig& config, const Tokenizer& tokenizer)
    : tokenizer_(tokenizer),
      config_(config),
      prefix_(token("--fim-prefix-token", config.prefix)),
      middle_(token("--fim-middle-token", config.middle)),
      suffix_(token("--fim-suffix-token", config.suffix)),
      pad_(token("--fim-pad-token", config.pad)),
      eod_(token("--fim-eod-token", config.eod)),
      left_out_{prefix_, middle_, suffix_, pad_, eod_} {
  if (config.split_sample) split_ = token("--fim-split-sample", *config.split_sample);
  const Tokenizer::Around around = tokenizer.around();
  for (const std::span<const int32_t> some : {around.before, around.after})
    left_out_.insert(left_out_.end(), some.begin(), some.end());
}

int32_t FimPermutation::token(const char* option, const std::string& text) const {
  Ids ids;
  if (valid_utf8_prefix(text) == text.size()) tokenizer_.encode(text, ids);
  const Tokenizer::Around around = tokenizer_.around();
  const auto begin = static_cast<std::ptrdiff_t>(around.before.size());
  const auto end = static_cast<std::ptrdiff_t>(around.after.size());
  if (static_cast<std::ptrdiff_t>(ids.size()) >= begin + end) ids = Ids(ids.begin() + begin, ids.end() - end);
  if (ids.size() == 1 && tokenizer_.decode(ids) == text) return ids.front();
  fail(ErrorKind::kUsage, option, ' ', quote(text), ": the tokenizer has no such token, but ", ids.size(),
       " for this text; give one of its tokens, or a tokenizer with it");
}

size_t FimPermutation::permute(std::span<int32_t> ids, FimDraws& draws) const {
  const bool several = std::find(ids.begin(), ids.end(), eod_) != ids.end();
  const Ids changed =
      several ? between(ids, eod_, [&](View some) { return document(some, draws); }) : document(ids, draws);
  const size_t kept = std::min(ids.size(), changed.size());
  std::copy_n(changed.begin(), kept, ids.begin());
  std::fill(ids.begin() + static_cast<std::ptrdiff_t>(kept), ids.end(), pad_);
  return kept;
}

FimPermutation::Ids FimPermutation::document(View ids, FimDraws& draws) const {
  if (!split_ || std::find(ids.begin(), ids.end(), *split_) == ids.end())
    return piece(ids, config_.rate, draws);
  if (!draws.happens(config_.rate)) return {ids.begin(), ids.end()};
  return between(ids, *split_, [&](View some) { return piece(some, *config_.fragment_rate, draws); });
}

FimPermutation::Ids FimPermutation::piece(View ids, double rate, FimDraws& draws) const {
  if (!draws.happens(rate)) return {ids.begin(), ids.end()};
  const std::string text = text_of(ids);
  if (config_.no_prefix && text.starts_with(*config_.no_prefix)) return {ids.begin(), ids.end()};
  const Cut parts = cut(text, draws.two_up_to(count_code_points(text)));
  const bool suffix_first = draws.happens(config_.spm_rate);
  Ids out{prefix_};
  if (!suffix_first) tokenizer_.encode(parts.prefix, out);
  out.push_back(suffix_);
  tokenizer_.encode(parts.suffix, out);
  out.push_back(middle_);
  if (suffix_first) tokenizer_.encode(parts.prefix, out);
  tokenizer_.encode(parts.middle, out);
  return out;
}

std::string FimPermutation::text_of(View ids) const {
  Ids plain;
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(plain), [&](int32_t id) {
    return std::find(left_out_.begin(), left_out_.end(), id) == left_out_.end();
  });
  return tokenizer_.decode(plain);
}

}  // namespace megalith
