#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/part_key.h"
#include "libcore/text/wordpiece/wordpiece_model.h"
#include "libcore/text/worker_tokenizer.h"

namespace megalith {

/// Encodes texts with a WordPiece model, and remembers the words that it has cut lately.
class WordPieceWorker : public TextWorker {
 public:
  /// Keeps references to both.
  WordPieceWorker(const WordPieceTables& tables, const WordPieceRules& rules);

  void encode(std::string_view text, const TakeIds& take) override;
  void begin(const TakeIds& take) override;
  void add(std::string_view part) override;
  void finish() override;
  void trim() override;

 private:
  struct Cut {
    static constexpr size_t kMostIds = 7;
    PartKey key{};  // all zero: free
    uint32_t count = 0;
    std::array<int32_t, kMostIds> ids{};
  };
  static_assert(sizeof(Cut) == 64);
  static constexpr int kBits = 16;

  size_t cut_words(std::string_view text, bool to_end);
  size_t end_of_held(std::string_view part) const;
  void hold(std::string_view text);
  void take_word(std::string_view text, size_t bytes);
  void cut_word(std::string_view word);
  bool is_too_long(std::string_view word) const;
  void remember(const PartKey& key, size_t first_id);
  void hand_over();

  const WordPieceRules& rules_;
  WordClasses classes_;
  PrefixTrie firsts_, others_;
  std::vector<Cut> cuts_;
  std::vector<int32_t> ids_;
  const TakeIds* take_ = nullptr;
  std::string held_;  // the beginning of a word that may go on; of a word that is too long only a part
  WordClasses::Class held_class_ = 0;
};

/// A worker that keeps references to both.
std::unique_ptr<TextWorker> make_text_worker(const WordPieceTables& tables, const WordPieceRules& rules);

}  // namespace megalith
