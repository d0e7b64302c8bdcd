#include "libcore/text/patterns/compiled_pattern.h"

#include <algorithm>
#include <map>
#include <string>

#include "libcore/base/error.h"

namespace megalith {
namespace {

using Node = PatternNode;
using Kind = Node::Kind;

constexpr size_t kMostSteps = 20'000, kMostStates = 4096, kMostClasses = 254;
constexpr size_t kMostWork = 50'000'000;  // steps followed to find the states; less than a second

/// What an engine does at one place of the expression, before it goes on at the next place.
struct Step {
  enum class Kind : uint8_t {
    kTake,    // takes a character of the set
    kLook,    // goes on if the next character is in the set
    kFork,    // tries `next`, then `other`
    kFinish,  // ends a match
  };
  Kind kind;
  size_t set = 0;  // the index of the set
  bool at_end = false;
  uint32_t next = 0, other = 0;
};

/// The steps of an expression; the first is the one at start().
class Program {
 public:
  explicit Program(const Node& node) : start_(add(node, push({.kind = Step::Kind::kFinish}))) {}

  uint32_t start() const { return start_; }
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<CharRanges>& sets() const { return sets_; }

 private:
  uint32_t push(const Step& step) {
    if (steps_.size() == kMostSteps) throw UnsupportedPattern{concat("more than ", kMostSteps, " steps")};
    steps_.push_back(step);
    return static_cast<uint32_t>(steps_.size() - 1);
  }
  size_t set_index(const CharRanges& set) {
    const auto found = std::find(sets_.begin(), sets_.end(), set);
    if (found != sets_.end()) return static_cast<size_t>(found - sets_.begin());
    sets_.push_back(set);
    return sets_.size() - 1;
  }

  /// Adds the steps of a node, after which the engine goes on at `after`. Returns the first.
  uint32_t add(const Node& node, uint32_t after) {
    switch (node.kind) {
      case Kind::kSet:
        return push({.kind = Step::Kind::kTake, .set = set_index(node.set), .next = after});
      case Kind::kNext:
        return push(
            {.kind = Step::Kind::kLook, .set = set_index(node.set), .at_end = node.at_end, .next = after});
      case Kind::kSequence:
        for (size_t i = node.children.size(); i-- > 0;) after = add(node.children[i], after);
        return after;
      case Kind::kChoice: {
        uint32_t first = add(node.children.back(), after);
        for (size_t i = node.children.size() - 1; i-- > 0;)
          first = push({.kind = Step::Kind::kFork, .next = add(node.children[i], after), .other = first});
        return first;
      }
      case Kind::kRepeat:
        return add_repeat(node, after);
    }
    return after;
  }

  uint32_t add_repeat(const Node& node, uint32_t after) {
    const Node& inner = node.children[0];
    // A possessive quantifier takes all it can: it ends only where no such character follows.
    uint32_t leave = after;
    if (node.greed == Node::Greed::kPossessive)
      leave = push({.kind = Step::Kind::kLook,
                    .set = set_index(~characters_of(inner)),
                    .at_end = true,
                    .next = after});
    const bool lazy = node.greed == Node::Greed::kLazy;
    const auto fork = [&](uint32_t again) {
      return push({.kind = Step::Kind::kFork, .next = lazy ? leave : again, .other = lazy ? again : leave});
    };
    uint32_t at = after;
    if (node.max == Node::kUnbounded) {
      at = fork(0);
      const uint32_t again = add(inner, at);
      (lazy ? steps_[at].other : steps_[at].next) = again;
    } else {
      for (size_t i = node.min; i < node.max; ++i) at = fork(add(inner, at));
    }
    for (size_t i = 0; i < node.min; ++i) at = add(inner, at);
    return at;
  }

  /// The characters of a node that the parser has found to match one.
  static CharRanges characters_of(const Node& node) {
    if (node.kind == Kind::kSet) return node.set;
    CharRanges all;
    for (const Node& child : node.children) all = all | characters_of(child);
    return all;
  }

  std::vector<Step> steps_;
  std::vector<CharRanges> sets_;
  uint32_t start_;
};

/// Code points that are in the same sets, by number: those from begins[i] on have the class of_ranges[i].
struct Partition {
  std::vector<uint32_t> begins;
  std::vector<CompiledPattern::Class> of_ranges;
  std::vector<std::vector<bool>> sets_of;  // of each class, whether it is in each set
};

Partition partition(const std::vector<CharRanges>& sets) {
  Partition out;
  out.begins = {0};
  for (const CharRanges& set : sets)
    for (const auto& [first, last] : set.ranges()) {
      out.begins.push_back(first);
      if (last < CharRanges::kLast) out.begins.push_back(last + 1);
    }
  std::sort(out.begins.begin(), out.begins.end());
  out.begins.erase(std::unique(out.begins.begin(), out.begins.end()), out.begins.end());
  std::map<std::vector<bool>, CompiledPattern::Class> known;
  for (const uint32_t begin : out.begins) {
    std::vector<bool> in;
    for (const CharRanges& set : sets) in.push_back(set.has(begin));
    const auto [at, is_new] = known.emplace(in, static_cast<CompiledPattern::Class>(known.size()));
    if (known.size() > kMostClasses)
      throw UnsupportedPattern{concat("more than ", kMostClasses, " classes of characters")};
    if (is_new) out.sets_of.push_back(std::move(in));
    out.of_ranges.push_back(at->second);
  }
  return out;
}

}  // namespace

/// Finds the states. Each is a list of steps at which an engine may be after some text, in the order in which
/// it tries them.
class CompiledPattern::Builder {
 public:
  Builder(const Program& program, const Partition& parts) : program_(program), parts_(parts) {
    number({});
    number({program.start()});
    for (size_t state = 0; state < lists_.size(); ++state)
      for (size_t next = 0; next <= parts.sets_of.size(); ++next) table_.push_back(entry(state, next));
  }
  std::vector<uint32_t> take() { return std::move(table_); }

 private:
  using List = std::vector<uint32_t>;

  uint32_t number(List list) {
    const auto [at, is_new] = numbers_.emplace(std::move(list), static_cast<uint32_t>(lists_.size()));
    if (is_new) lists_.push_back(at->first);
    if (lists_.size() > kMostStates) throw UnsupportedPattern{concat("more than ", kMostStates, " states")};
    return at->second;
  }

  uint32_t entry(size_t state, size_t next) {
    List after;
    seen_.assign(program_.steps().size(), false);
    added_.assign(program_.steps().size(), false);
    work_ += program_.steps().size() / 64;
    bool matched = false;
    for (const uint32_t at : lists_[state])
      if ((matched = follow(at, next, after))) break;
    const auto stride = static_cast<uint32_t>(parts_.sets_of.size() + 1);
    return number(std::move(after)) * stride | (matched ? kMatched : 0);
  }

  /// Follows the engine from a step up to the characters that it takes if one of class `next` comes, and adds
  /// the steps after those to `after`. Returns whether it ends a match: then it tries nothing else.
  bool follow(uint32_t first, size_t next, List& after) {
    const bool is_end = next == parts_.sets_of.size();
    open_.assign(1, first);
    while (!open_.empty()) {
      const uint32_t at = open_.back();
      open_.pop_back();
      if (seen_[at]) continue;
      seen_[at] = true;
      if (++work_ > kMostWork) throw UnsupportedPattern{"too many steps to find its states"};
      const Step& step = program_.steps()[at];
      const bool in_set = !is_end && parts_.sets_of[next][step.set];
      if (step.kind == Step::Kind::kFinish) return true;
      if (step.kind == Step::Kind::kFork) {
        open_.push_back(step.other);
        open_.push_back(step.next);
      } else if (step.kind == Step::Kind::kLook) {
        if (in_set || (is_end && step.at_end)) open_.push_back(step.next);
      } else if (in_set && !added_[step.next]) {
        added_[step.next] = true;
        after.push_back(step.next);
      }
    }
    return false;
  }

  const Program& program_;
  const Partition& parts_;
  std::map<List, uint32_t> numbers_;
  std::vector<List> lists_;
  List open_;  // what follow() has yet to follow, the last first
  std::vector<bool> seen_, added_;
  size_t work_ = 0;
  std::vector<uint32_t> table_;
};

CompiledPattern::CompiledPattern(std::string_view regex) {
  const Program program(parse_pattern(regex));
  const Partition parts = partition(program.sets());
  stride_ = static_cast<uint32_t>(parts.sets_of.size() + 1);
  next_ = Builder(program, parts).take();
  set_classes(parts.of_ranges, parts.begins);
}

void CompiledPattern::set_classes(const std::vector<Class>& of_ranges, const std::vector<uint32_t>& begins) {
  std::map<std::array<Class, 64>, uint16_t> known;
  size_t range = 0;
  for (uint32_t begin = 0; begin <= CharRanges::kLast; begin += 64) {
    std::array<Class, 64> block;
    for (uint32_t i = 0; i < block.size(); ++i) {
      while (range + 1 < begins.size() && begins[range + 1] <= begin + i) ++range;
      block[i] = of_ranges[range];
    }
    const auto [at, is_new] = known.emplace(block, static_cast<uint16_t>(known.size()));
    if (is_new) classes_.insert(classes_.end(), block.begin(), block.end());
    blocks_.push_back(at->second);
  }
  for (uint32_t c = 0; c < ascii_.size(); ++c) ascii_[c] = class_of(c);
}

bool CompiledPattern::covers_texts() const {
  // A state fails if some text after it leads to no match.
  std::vector<bool> fails(states(), false);
  fails[0] = true;
  const auto fails_after = [&](size_t state, size_t next) {
    return fails[(next_[state * stride_ + next] & kRow) / stride_];
  };
  const auto may_fail = [&](size_t state) {
    for (size_t next = 0; next < stride_; ++next) {
      const bool matched = (next_[state * stride_ + next] & kMatched) != 0;
      if (!matched && (next == end_class() || fails_after(state, next))) return true;
    }
    return false;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t state = 1; state < states(); ++state)
      if (!fails[state] && may_fail(state)) changed = fails[state] = true;
  }
  for (size_t first = 0; first < end_class(); ++first)
    if (fails_after(1, first)) return false;
  return true;
}

}  // namespace megalith
