#include "libcore/finetune/examples.h"

#include <algorithm>
#include <numeric>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {

PlainTokenizer::PlainTokenizer(const TokenizerFiles& files, int32_t eos) {
  TokenizerFiles plain = files;
  plain.hf_special_tokens = false;
  plain_ = make_tokenizer(plain);
  eos_ = eos >= 0 ? eos : plain_->eod();
  if (!files.hf_special_tokens || files.type == "NullTokenizer") return;
  make_tokenizer(files)->encode("", before_);
  if (!before_.empty() && before_.back() == eos_) before_.pop_back();  // an end that stands after a text
}

std::vector<int32_t> PlainTokenizer::encode(const std::string& text) const {
  std::vector<int32_t> ids;
  plain_->encode(text, ids);
  return ids;
}

int64_t Examples::Example::counted() const {
  return std::accumulate(counts.begin() + 1, counts.end(), int64_t{0});
}

void Examples::add(const Record& record, const PlainTokenizer& tokenizer, const LengthLimits& limits) {
  const auto begin = static_cast<size_t>(begins_.back());
  const auto append = [&](std::span<const int32_t> ids, bool answer) {
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    counts_.resize(ids_.size(), answer ? 1 : 0);
  };
  bool cut_answer = false, cut_source = false;
  if (!record.rendered) append(tokenizer.before(), false);
  for (const Segment& segment : record.segments) {
    std::vector<int32_t> ids = tokenizer.encode(segment.text);
    if (segment.answer && !record.rendered) ids.push_back(tokenizer.eos());
    const auto most = static_cast<size_t>(segment.answer ? limits.target : limits.source);
    if (most > 0 && ids.size() > most) {
      (segment.answer ? cut_answer : cut_source) = true;
      const auto surplus = static_cast<std::ptrdiff_t>(ids.size() - most);
      if (segment.answer)
        ids.resize(most);
      else
        ids.erase(ids.begin(), ids.begin() + surplus);
    }
    append(ids, segment.answer);
  }
  if (limits.whole > 0 && ids_.size() - begin > static_cast<size_t>(limits.whole)) {
    cut_answer = true;
    ids_.resize(begin + static_cast<size_t>(limits.whole));
    counts_.resize(ids_.size());
  }
  report_.cut_sources += cut_source ? 1 : 0;
  report_.cut_answers += cut_answer ? 1 : 0;
  begins_.push_back(static_cast<int64_t>(ids_.size()));
  const Example made = (*this)[size() - 1];
  const int64_t counted = made.ids.size() < 2 ? 0 : made.counted();
  if (counted == 0) {
    ++report_.without_answer;
    ids_.resize(begin);
    counts_.resize(begin);
    begins_.pop_back();
    return;
  }
  const auto length = static_cast<int64_t>(made.ids.size());
  report_.shortest = report_.records == 0 ? length : std::min(report_.shortest, length);
  report_.longest = std::max(report_.longest, length);
  ++report_.records;
  report_.tokens += length;
  report_.counted += counted;
}

Examples::Example Examples::operator[](int64_t i) const {
  const auto begin = static_cast<size_t>(begins_[static_cast<size_t>(i)]);
  const auto size = static_cast<size_t>(begins_[static_cast<size_t>(i) + 1]) - begin;
  return {.ids = std::span(ids_).subspan(begin, size), .counts = std::span(counts_).subspan(begin, size)};
}

std::string report_line(const std::string& name, const ExampleReport& report) {
  const auto records = static_cast<double>(std::max<int64_t>(1, report.records));
  const auto tokens = static_cast<double>(std::max<int64_t>(1, report.tokens));
  std::string line =
      concat(name, ": ", format_count(report.records), " records", ", ", report.shortest, " to ",
             report.longest, " tokens (mean ", format_fixed(static_cast<double>(report.tokens) / records, 1),
             "), ", format_fixed(100.0 * static_cast<double>(report.counted) / tokens, 1),
             " % of them learned; ", report.cut_answers, " answers and ", report.cut_sources, " prompts cut");
  if (report.without_answer > 0)
    line += concat("; ", report.without_answer, " left out, since no token of the answer fits");
  return line;
}

}  // namespace megalith
