#include "libcore/finetune/examples.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/hash/xxh64.h"
#include "libcore/io/streams/stop_signal.h"

namespace megalith {
namespace {

/// Keeps the last `most` ids. Returns whether any were dropped.
bool drop_beginning(std::vector<int32_t>& ids, int64_t most) {
  const auto size = static_cast<int64_t>(ids.size());
  if (size > most) ids.erase(ids.begin(), ids.begin() + (size - most));
  return size > most;
}

/// Drops the beginning of a prompt, or the end of an answer; returns whether the segment was too long.
bool truncate_segment(std::vector<int32_t>& ids, bool answer, const LengthLimits& limits) {
  const int64_t most = answer ? limits.target : limits.source;
  if (most == 0) return false;
  if (!answer) return drop_beginning(ids, most);
  const bool cut = ids.size() > static_cast<size_t>(most);
  if (cut) ids.resize(static_cast<size_t>(most));
  return cut;
}

}  // namespace

PlainTokenizer::PlainTokenizer(std::unique_ptr<Tokenizer> tokenizer, std::optional<int32_t> eos)
    : tokenizer_(std::move(tokenizer)), eos_(eos ? *eos : tokenizer_->eod()) {}

std::vector<int32_t> PlainTokenizer::encode(const std::string& text) const {
  std::vector<int32_t> ids;
  tokenizer_->encode(text, ids);
  const Tokenizer::Around around = tokenizer_->around();
  ids.resize(ids.size() - around.after.size());
  ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(around.before.size()));
  return ids;
}

int64_t Examples::Example::counted() const {
  return counts.size() < 2 ? 0 : std::accumulate(counts.begin() + 1, counts.end(), int64_t{0});
}

/// The ids of one record, and whether a part of it was truncated.
struct Examples::Tokens {
  Tokens(const Record& record, const PlainTokenizer& tokenizer, const LengthLimits& limits);

  int64_t counted() const { return Example{ids, counts}.counted(); }

  std::vector<int32_t> ids;
  std::vector<uint8_t> counts;
  bool truncated_prompt = false, truncated_answer = false;
};

Examples::Tokens::Tokens(const Record& record, const PlainTokenizer& tokenizer, const LengthLimits& limits) {
  stop_if_asked();
  const auto add = [&](std::span<const int32_t> more, bool answer) {
    ids.insert(ids.end(), more.begin(), more.end());
    counts.resize(ids.size(), answer ? 1 : 0);
  };
  if (!record.rendered) add(tokenizer.before(), false);
  for (const Segment& segment : record.segments) {
    std::vector<int32_t> part = tokenizer.encode(segment.text);
    if (segment.answer && !record.rendered) part.push_back(tokenizer.eos());
    const bool shorter = truncate_segment(part, segment.answer, limits);
    (segment.answer ? truncated_answer : truncated_prompt) |= shorter;
    add(part, segment.answer);
  }
  if (limits.whole > 0 && ids.size() > static_cast<size_t>(limits.whole)) {
    truncated_answer = true;
    ids.resize(static_cast<size_t>(limits.whole));
    counts.resize(ids.size());
  }
}

void Examples::note_truncation(const Tokens& made) {
  report_.truncated_prompts += made.truncated_prompt ? 1 : 0;
  report_.truncated_answers += made.truncated_answer ? 1 : 0;
}

void Examples::append(const Tokens& made) {
  ids_.insert(ids_.end(), made.ids.begin(), made.ids.end());
  counts_.insert(counts_.end(), made.counts.begin(), made.counts.end());
  begins_.push_back(static_cast<int64_t>(ids_.size()));
  const auto length = static_cast<int64_t>(made.ids.size());
  report_.shortest = report_.records == 0 ? length : std::min(report_.shortest, length);
  report_.longest = std::max(report_.longest, length);
  ++report_.records;
  report_.tokens += length;
  report_.counted += made.counted();
}

void Examples::add(const Record& record, const PlainTokenizer& tokenizer, const LengthLimits& limits) {
  const Tokens made(record, tokenizer, limits);
  note_truncation(made);
  if (made.counted() > 0)
    append(made);
  else
    ++report_.without_answer;
}

void Examples::add(const RecordPair& pair, const PlainTokenizer& tokenizer, const LengthLimits& limits) {
  const Tokens chosen(pair.chosen, tokenizer, limits), rejected(pair.rejected, tokenizer, limits);
  note_truncation(chosen);
  note_truncation(rejected);
  if (chosen.counted() == 0 || rejected.counted() == 0) {
    ++report_.without_answer;
    return;
  }
  append(chosen);
  append(rejected);
}

Question question_of(const Record& record, const PlainTokenizer& tokenizer, const LengthLimits& limits) {
  Question out{.prompt = {}, .answer = record.answer, .ids = {}, .cut = false};
  if (!record.rendered) out.ids.assign(tokenizer.before().begin(), tokenizer.before().end());
  size_t last = record.segments.size();
  while (last > 0 && !record.segments[last - 1].answer) --last;
  for (size_t i = 0; i + 1 < last; ++i) {
    const Segment& segment = record.segments[i];
    out.prompt += segment.text;
    std::vector<int32_t> part = tokenizer.encode(segment.text);
    truncate_segment(part, segment.answer, limits);
    out.ids.insert(out.ids.end(), part.begin(), part.end());
  }
  if (limits.whole > 0) out.cut = drop_beginning(out.ids, limits.whole);
  return out;
}

Examples::Example Examples::operator[](int64_t i) const {
  const auto begin = static_cast<size_t>(begins_[static_cast<size_t>(i)]);
  const auto size = static_cast<size_t>(begins_[static_cast<size_t>(i) + 1]) - begin;
  return {.ids = std::span(ids_).subspan(begin, size), .counts = std::span(counts_).subspan(begin, size)};
}

size_t Examples::bytes() const {
  return ids_.capacity() * sizeof ids_[0] + counts_.capacity() + begins_.capacity() * sizeof begins_[0];
}

uint64_t Examples::hash() const {
  Xxh64 hash;
  hash.update(ids_.data(), ids_.size() * sizeof ids_[0]);
  hash.update(counts_.data(), counts_.size());
  hash.update(begins_.data(), begins_.size() * sizeof begins_[0]);
  return hash.digest();
}

std::string report_line(const std::string& name, const ExampleReport& report) {
  const auto records = static_cast<double>(std::max<int64_t>(1, report.records));
  const auto tokens = static_cast<double>(std::max<int64_t>(1, report.tokens));
  std::string line = concat(
      printable(name), ": ", format_count(report.records), " records", ", ", report.shortest, " to ",
      report.longest, " tokens (mean ", format_fixed(static_cast<double>(report.tokens) / records, 1), "), ",
      format_fixed(100.0 * static_cast<double>(report.counted) / tokens, 1), " % of them learned; ",
      report.truncated_answers, " answers and ", report.truncated_prompts, " prompts truncated");
  if (report.without_answer > 0)
    line += concat("; ", report.without_answer, " left out: no token of the answer fits");
  return line;
}

}  // namespace megalith
