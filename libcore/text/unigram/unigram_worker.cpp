#include "libcore/text/unigram/unigram_worker.h"

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "libcore/base/utf8.h"
#include "libcore/text/core_tokenizer.h"
#include "libcore/text/idle_pool.h"
#include "libcore/text/unicode/unicode.h"
#include "libcore/text/unigram/part_cache.h"
#include "libcore/text/unigram/unigram_lattice.h"
#include "libcore/text/unigram/unknown_run.h"

namespace megalith {
namespace {

constexpr size_t kManyIds = size_t{1} << 14;  // ids handed over at a time
constexpr size_t kGiant = size_t{1} << 16;    // bytes of a part that is cut as it arrives

/// Collects the ids of a text's pieces and hands them over, many at a time.
class PieceIds {
 public:
  PieceIds(const UnigramTables& tables, const UnigramRules& rules)
      : trie_(tables.trie), unknown_id_(rules.unknown), unknown_(tables, rules) {}

  void begin(const TextWorker::TakeIds& take) {
    take_ = &take;
    ids_.clear();
    unknown_.clear();
  }
  /// A token, or an unknown character.
  void add(std::string_view piece) {
    const int32_t id = trie_.find(piece);
    if (id < 0 || id == unknown_id_)
      unknown_.add(piece, ids_);
    else
      add(std::span(&id, 1));
    hand_over_many();
  }
  void add(std::span<const int32_t> tokens) {
    end_unknown();
    ids_.insert(ids_.end(), tokens.begin(), tokens.end());
  }
  /// Unknown characters that follow are no part of a run before them.
  void end_unknown() {
    if (!unknown_.empty()) unknown_.finish(ids_);
  }
  void hand_over_many() {
    if (ids_.size() >= kManyIds) hand_over();
  }
  void finish() {
    end_unknown();
    hand_over();
  }

 private:
  void hand_over() {
    if (!ids_.empty()) (*take_)(ids_);
    ids_.clear();
  }

  PrefixTrie trie_;
  const int32_t unknown_id_;
  UnknownRun unknown_;
  std::vector<int32_t> ids_;
  const TextWorker::TakeIds* take_ = nullptr;
};

template <class Sum>
class Worker : public TextWorker {
 public:
  Worker(const UnigramTables& tables, const UnigramRules& rules)
      : tables_(tables),
        rules_(rules),
        borders_(tables.borders),
        cache_(tables, rules),
        ids_(tables, rules),
        lattice_(tables, rules.unknown_score, [this](std::string_view piece) { ids_.add(piece); }) {
    borders_.always_cut_before(rules.mark);
  }

  void encode(std::string_view text, const TakeIds& take) override {
    begin(take);
    if (text.size() <= CoreTokenizer::kLongText) {
      cut_parts(text, true);
      return ids_.finish();
    }
    while (!text.empty()) {
      const std::string_view part = first_characters(text, CoreTokenizer::kPartBytes);
      add(part);
      text.remove_prefix(part.size());
    }
    finish();
  }

  void begin(const TakeIds& take) override {
    ids_.begin(take);
    sum_ = 0;
    held_.clear();
    in_giant_ = false;
  }

  void add(std::string_view part) override {
    held_ += part;
    if (in_giant_) continue_giant(false);
    if (in_giant_) return;
    held_.erase(0, cut_parts(held_, false));
    if (held_.size() > kGiant) begin_giant();
  }

  void finish() override {
    if (in_giant_) continue_giant(true);
    cut_parts(held_, true);
    ids_.finish();
  }

  void trim() override {
    if (held_.capacity() > 2 * kGiant) free_memory(held_);
    lattice_.trim();
  }

 private:
  static constexpr bool kIsFloat = std::is_same_v<Sum, float>;

  /// Cuts the parts of a text between borders, and returns where the last of them ends. Without `to_end` more
  /// text follows, so the part at the end is left for later: it may be longer.
  size_t cut_parts(std::string_view text, bool to_end) {
    size_t begin = 0;
    while (begin < text.size()) {
      const std::string_view rest = text.substr(begin);
      size_t count = borders_.find(rest, ends_), part = 0;
      if (!to_end && ends_[count - 1] == rest.size()) --count;
      for (size_t i = 0; i < count; part = ends_[i++]) cut_part(rest.substr(part), ends_[i] - part);
      if (part == 0) break;
      begin += part;
      ids_.hand_over_many();
    }
    return begin;
  }

  /// Cuts the first `bytes` bytes of `text`.
  void cut_part(std::string_view text, size_t bytes) {
    begin_part(text);
    if (bytes <= PartKey::kLongest)
      if (const PartCut* const cut = cache_.find(text, bytes); cut && is_certain(*cut)) {
        const std::span tokens = std::span(cut->ids).first(cut->count);
        for (const int32_t id : tokens) sum_ = static_cast<Sum>(tables_.score(id)) + sum_;
        ids_.add(tokens);
        return;
      }
    sum_ = lattice_.cut(text.substr(0, bytes), sum_);
  }

  void begin_part(std::string_view text) {
    if (!rules_.mark.empty() && text.starts_with(rules_.mark)) {
      ids_.end_unknown();
      sum_ = 0;
    }
    if constexpr (kIsFloat)
      if (std::abs(sum_) > kFarthestSum) sum_ = 0;
  }

  /// Whether the reference cuts the part in this way after sum_.
  bool is_certain(const PartCut& cut) const {
    if constexpr (!kIsFloat)
      if (sum_ == 0) return true;  // the cache has added up the same sums
    // Half a unit in the last place of a sum is at most the sum times this. The sums of the cache are
    // rounded, too, hence twice the bound.
    constexpr double kRounding = std::numeric_limits<Sum>::epsilon() / 2 * 1.01;
    const double farthest = std::abs(static_cast<double>(sum_)) + 2 * static_cast<double>(cut.bound);
    if (kIsFloat && !(farthest < kFarthestSum)) return false;
    return static_cast<double>(cut.margin) > farthest * kRounding;
  }

  void begin_giant() {
    in_giant_ = true;
    begin_part(held_);
    lattice_.begin(sum_);
    add_to_giant(character_begin(held_, held_.size() - 1));
  }

  /// held_ begins with the last character that is known to belong to the giant.
  void continue_giant(bool to_end) {
    borders_.find(held_, ends_);
    const size_t end = ends_[0];
    if (end == held_.size() && !to_end) return add_to_giant(character_begin(held_, end - 1));
    add_to_giant(end);
    sum_ = lattice_.finish();
    in_giant_ = false;
  }

  void add_to_giant(size_t bytes) {
    lattice_.add(std::string_view(held_).substr(0, bytes));
    held_.erase(0, bytes);
  }

  const UnigramTables& tables_;
  const UnigramRules& rules_;
  CharacterBorders borders_;
  PartCache cache_;
  PieceIds ids_;
  UnigramLattice<Sum> lattice_;
  std::array<uint32_t, 2048> ends_;
  Sum sum_ = 0;
  std::string held_;       // text that is not cut yet
  bool in_giant_ = false;  // whether lattice_ has the beginning of the part in held_
};

}  // namespace

std::unique_ptr<TextWorker> make_text_worker(const UnigramTables& tables, const UnigramRules& rules) {
  if (rules.sums == UnigramRules::Sums::kFloat) return std::make_unique<Worker<float>>(tables, rules);
  return std::make_unique<Worker<double>>(tables, rules);
}

}  // namespace megalith
