#include "libcore/text/formats/sentencepiece/whole_text_encoder.h"

#include <queue>
#include <utility>

#include "libcore/text/unicode/unicode.h"

namespace megalith {

WholeTextEncoder::WholeTextEncoder(const SentencePieceTable& table, SentencePieceSymbols symbols)
    : symbols_(std::move(symbols)), whole_(symbols_.whole) {
  const size_t tokens = table.tokens.size();
  for (size_t i = 0; i < symbols_.merges.size(); ++i) {
    const TokenMerge& merge = symbols_.merges[i];
    made_[pair_of(merge.left, merge.right)] = {merge.merged, symbols_.ranks[i]};
  }
  for (size_t id = 0; id < symbols_.texts.size(); ++id) {
    const bool is_unused = id < tokens && table.tokens[id].type == SentencePieceTable::kUnused;
    is_unused_.push_back(is_unused);
    is_token_.push_back(id < tokens && !is_unused);
    const std::string& text = symbols_.texts[id];
    if (!text.empty() && code_point_at(text).bytes == text.size())
      characters_.emplace(text, static_cast<int32_t>(id));
  }
  for (const AddedToken& token : symbols_.whole) whole_ids_.emplace(token.text, token.id);
}

/// One text.
class WholeTextEncoder::Run {
 public:
  Run(const WholeTextEncoder& owner, std::vector<int32_t>& ids) : owner_(owner), ids_(ids) {}

  void encode(std::string_view text) {
    split(text);
    for (size_t i = 1; i < parts_.size(); ++i) consider(i - 1, i);
    while (!candidates_.empty()) {
      const Candidate best = candidates_.top();
      candidates_.pop();
      join(best);
    }
    for (size_t i = 0; i < parts_.size(); i = parts_[i].next) add(parts_[i]);
  }

 private:
  static constexpr int32_t kNoSymbol = -1;
  struct Part {
    std::string_view text;
    int32_t id;   // kNoSymbol: it is not merged
    bool frozen;  // a user-defined piece
    size_t previous, next;
  };
  struct Candidate {
    uint32_t rank;
    size_t left, right;
    int32_t left_id, right_id, id;
    /// The best one is the greatest.
    bool operator<(const Candidate& other) const {
      return std::pair(rank, left) > std::pair(other.rank, other.left);
    }
  };

  void split(std::string_view text) {
    while (!text.empty()) {
      const size_t whole = owner_.whole_.longest_at(text);
      const std::string_view part = text.substr(0, whole > 0 ? whole : code_point_at(text).bytes);
      const auto found = owner_.characters_.find(part);
      const bool is_symbol = whole == 0 && found != owner_.characters_.end();
      parts_.push_back(
          {part, is_symbol ? found->second : kNoSymbol, whole > 0, parts_.size() - 1, parts_.size() + 1});
      text.remove_prefix(part.size());
    }
  }

  void consider(size_t left, size_t right) {
    if (left >= parts_.size() || right >= parts_.size()) return;  // there is no neighbour
    const int32_t left_id = parts_[left].id, right_id = parts_[right].id;
    const auto made = owner_.made_.find(pair_of(left_id, right_id));
    if (left_id == kNoSymbol || right_id == kNoSymbol || made == owner_.made_.end()) return;
    const auto [id, rank] = made->second;
    candidates_.push({rank, left, right, left_id, right_id, id});
    if (owner_.is_unused_[static_cast<size_t>(id)]) made_of_[id] = {left_id, right_id};
  }

  void join(const Candidate& best) {
    Part& left = parts_[best.left];
    Part& right = parts_[best.right];
    if (left.id != best.left_id || right.id != best.right_id || left.next != best.right) return;
    left = {
        {left.text.data(), left.text.size() + right.text.size()}, best.id, false, left.previous, right.next};
    right.id = kNoSymbol;
    if (left.next < parts_.size()) parts_[left.next].previous = best.left;
    consider(left.previous, best.left);
    consider(best.left, left.next);
  }

  void add(const Part& part) {
    if (part.frozen)
      add_token(owner_.whole_ids_.at(part.text));
    else if (part.id == kNoSymbol)
      add_unknown(part.text);
    else
      add_symbol(part.id);
  }
  void add_symbol(int32_t symbol) {
    std::vector<int32_t> left = {symbol};  // what is still to be added, the first one last
    while (!left.empty()) {
      const int32_t id = left.back();
      left.pop_back();
      const auto made_of = made_of_.find(id);
      if (owner_.is_token_[static_cast<size_t>(id)])
        add_token(id);
      else if (made_of == made_of_.end())
        add_unknown(owner_.symbols_.texts[static_cast<size_t>(id)]);
      else
        left.insert(left.end(), {made_of->second.second, made_of->second.first});
    }
  }
  void add_token(int32_t id) {
    ids_.push_back(id);
    after_unknown_ = false;
  }
  void add_unknown(std::string_view text) {
    const CharacterIds::Unknown& unknown = owner_.symbols_.unknown;
    if (!unknown.fuse)
      for (const char byte : text) ids_.push_back(unknown.bytes[static_cast<uint8_t>(byte)]);
    else if (!after_unknown_)
      ids_.push_back(*unknown.id);
    after_unknown_ = unknown.fuse;
  }

  const WholeTextEncoder& owner_;
  std::vector<int32_t>& ids_;
  std::vector<Part> parts_;
  std::priority_queue<Candidate> candidates_;
  std::unordered_map<int32_t, std::pair<int32_t, int32_t>> made_of_;  // the last pair of an unused piece
  bool after_unknown_ = false;
};

void WholeTextEncoder::encode(std::string_view normalized, std::vector<int32_t>& ids) const {
  Run(*this, ids).encode(normalized);
}

}  // namespace megalith
