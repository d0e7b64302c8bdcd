#include "libcore/text/pretokenize/text_cutter.h"

#include <algorithm>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/text/pretokenize/pattern_sequence.h"

namespace megalith {
namespace {

using Use = SplitStage::Use;

struct Part {
  size_t begin, end;
  bool matched;
};

/// Joins each part to the one before it if joins(before, part) holds, where `before` says whether the latter
/// began as a match.
template <class Joins>
void join_parts(std::vector<Part>& parts, const Joins& joins) {
  size_t count = 0;
  bool before = false;
  for (const Part& part : parts) {
    if (count > 0 && joins(before, part.matched)) {
      parts[count - 1].begin = std::min(parts[count - 1].begin, part.begin);
      parts[count - 1].end = std::max(parts[count - 1].end, part.end);
    } else {
      parts[count++] = part;
    }
    before = part.matched;
  }
  parts.resize(count);
}

void use_parts(Use use, std::vector<Part>& parts) {
  const auto is_first_match = [](bool before, bool matched) { return matched && !before; };
  switch (use) {
    case Use::kIsolated:
      return;
    case Use::kRemoved:
      std::erase_if(parts, [](const Part& part) { return part.matched; });
      return;
    case Use::kContiguous:
      return join_parts(parts, [](bool before, bool matched) { return before == matched; });
    case Use::kMergedWithPrevious:
      return join_parts(parts, is_first_match);
    case Use::kMergedWithNext:
      std::reverse(parts.begin(), parts.end());
      join_parts(parts, is_first_match);
      std::reverse(parts.begin(), parts.end());
  }
}

/// Appends pieces to a text.
class Pieces {
 public:
  explicit Pieces(CutText& out) : out_(out) {
    out_.text.clear();
    out_.ends.clear();
  }
  void add(std::string_view piece) {
    if (piece.empty()) return;
    out_.text += piece;
    if (out_.text.size() > UINT32_MAX)
      fail(ErrorKind::kData, "a text of ", out_.text.size(), " bytes is too long for this pre-tokenizer; at ",
           "most ", UINT32_MAX, " can be split");
    out_.ends.push_back(static_cast<uint32_t>(out_.text.size()));
  }

 private:
  CutText& out_;
};

/// Cuts pieces by one stage.
class PieceCut {
 public:
  PieceCut(const CutStage& stage, Pieces& out) : split_(std::get_if<SplitStage>(&stage)), out_(out) {
    if (split_) begins_.emplace(split_->pattern);
  }

  void cut(std::string_view piece) {
    if (!split_) return out_.add(piece.starts_with(' ') ? std::string(piece) : concat(' ', piece));
    find_parts(piece);
    if (split_->invert)
      for (Part& part : parts_) part.matched = !part.matched;
    use_parts(split_->use, parts_);
    for (const Part& part : parts_) out_.add(piece.substr(part.begin, part.end - part.begin));
  }

 private:
  /// The matches in a text and what lies between them.
  void find_parts(std::string_view text) {
    parts_.clear();
    size_t gap = 0;
    const auto take = [&](size_t begin, size_t end) {
      if (gap < begin) parts_.push_back({gap, begin, false});
      parts_.push_back({begin, end, true});
      gap = end;
    };
    each_match(split_->pattern, *begins_, text, take);
    if (gap < text.size()) parts_.push_back({gap, text.size(), false});
  }

  const SplitStage* split_;  // null: a blank is put before each piece
  std::optional<MatchBegins> begins_;
  std::vector<Part> parts_;
  Pieces& out_;
};

}  // namespace

std::string name_of(const CutStage& stage) {
  constexpr const char* kUses[] = {"isolated", "removed", "contiguous", "merged with previous",
                                   "merged with next"};
  const auto* const split = std::get_if<SplitStage>(&stage);
  if (split == nullptr) return "a blank before each";
  if (split->use == Use::kIsolated) return split->pattern.name;
  return concat(split->pattern.name, split->invert ? " inverted, " : " ",
                kUses[static_cast<size_t>(split->use)]);
}

std::optional<std::vector<SplitPattern>> plain_patterns(const std::vector<CutStage>& stages) {
  std::vector<SplitPattern> patterns;
  for (const CutStage& stage : stages) {
    const auto* const split = std::get_if<SplitStage>(&stage);
    if (split == nullptr || split->use != Use::kIsolated || split->pattern.find_all) return std::nullopt;
    patterns.push_back(split->pattern);
  }
  return patterns;
}

FindPretokens CutText::finder() const {
  return [this, next = size_t{0}](std::string_view, std::span<uint32_t> found) mutable {
    const uint32_t begin = next == 0 ? 0 : ends[next - 1];
    const size_t count = std::min(found.size(), ends.size() - next);
    for (size_t i = 0; i < count; ++i) found[i] = ends[next + i] - begin;
    next += count;
    return count;
  };
}

CutText TextCutter::cut(std::string_view utf8) const {
  CutText from, to;
  Pieces(from).add(utf8);
  for (const CutStage& stage : stages_) {
    Pieces out(to);
    PieceCut cut(stage, out);
    size_t begin = 0;
    for (const uint32_t end : from.ends) {
      cut.cut(std::string_view(from.text).substr(begin, end - begin));
      begin = end;
    }
    std::swap(from, to);
  }
  return from;
}

}  // namespace megalith
