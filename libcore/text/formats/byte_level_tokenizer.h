#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/bpe/added_tokens.h"
#include "libcore/text/bpe/cache/cached_encoder.h"
#include "libcore/text/bpe/character_borders.h"
#include "libcore/text/bpe/character_ids.h"
#include "libcore/text/bpe/token_texts.h"
#include "libcore/text/bpe/tokenizer_model.h"
#include "libcore/text/core_tokenizer.h"
#include "libcore/text/idle_pool.h"
#include "libcore/text/pretokenize/text_cutter.h"

namespace megalith {

/// What a ByteLevelTokenizer computes from its model.
struct ByteLevelTables {
  TokenTexts tokens;
  BytePairEncoder::Arrays merges;
  MergeBorders::Arrays borders;
  SharedArray<PieceSeed> seeds;   // the result of seeds()
  std::vector<int32_t> unmerged;  // the result of unmerged()
  std::string hash;               // the result of hash()
};

/// The borders of a vocabulary of characters. A tokenizer's find_pretokens shares them.
using SharedBorders = std::shared_ptr<const CharacterBorders>;

/// Everything that a BPE tokenizer of bytes or characters is made from. Filled by the readers of the file
/// formats (gpt2_files.h, tiktoken_files.h, hf_json.h, sentencepiece_files.h).
struct ByteLevelModel : TokenizerModel {
  std::array<int32_t, 256> byte_ids{};     // id of each byte; merging of a pretoken starts with these
  std::string dropped = {};                // bytes that are taken out of pretokens before they are merged
  std::optional<CharacterIds> characters;  // instead of byte_ids, if tokens are text and not bytes
  /// For characters: what a blank in `tokens`, and in the texts that are encoded, is in the vocabulary's
  /// files. Empty: a blank.
  std::string mark = {};
  std::vector<BytePairEncoder::Merge> merges;
  MergeRanks ranks = MergeRanks::kOrder;
  std::vector<uint32_t> given_ranks;  // the rank of each merge, with MergeRanks::kGiven
  bool ignore_merges = false;  // a pretoken that is a token becomes that token, whatever merging would give
  std::vector<int32_t> whole;  // ids: a pretoken that is one of these tokens becomes that token
  std::vector<bool> literal;   // ids whose tokens are not in the byte alphabet, so they match no pretoken;
                               // empty: there are none
  bool splits_characters = false;  // whether find_pretokens may cut characters
  FindPretokens find_pretokens = pretokenizer(PretokenPattern::kGpt2);
  SharedBorders borders;                     // if set, they replace find_pretokens
  std::shared_ptr<const TextCutter> cutter;  // the same: it makes the pretokens of a whole text
  /// How many bytes after a place decide whether a pretoken ends there, if nothing before the pretoken does.
  /// Empty: something before it may decide, too.
  std::optional<size_t> look_ahead;
  std::string rules = "gpt-2";  // identifies find_pretokens and characters in hash()
  // Tables that another tokenizer computed from the same model. If they are given, tokens, merges, ranks,
  // given_ranks, whole and literal are not used.
  std::optional<ByteLevelTables> tables;
};

/// A tokenizer that works as GPT-2's: added tokens are cut out, the rest is split into pretokens, and each
/// pretoken is merged by rank (see pretokenizer.h and byte_pair_encoder.h). Gives the same ids as Hugging
/// Face tokenizers' BPE with the ByteLevel pre-tokenizer without prefix space.
class ByteLevelTokenizer : public CoreTokenizer {
 public:
  explicit ByteLevelTokenizer(ByteLevelModel model);
  /// The tables that this tokenizer computed.
  ByteLevelTables tables() const;
  ~ByteLevelTokenizer() override;

  int vocab_size() const override { return static_cast<int>(tokens_.size()); }
  int eod() const override;
  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override;
  void encode_to(std::string_view utf8, IdBuffer& out) const override;
  void encode_in_parts(std::string_view utf8, const TakeIds& take) const override;
  /// Null without look_ahead.
  std::unique_ptr<Stream> stream(Takers take) const override;
  std::unique_ptr<Batch> batch(IdBuffer& out) const override;
  void expect(uint64_t bytes) override;
  std::string decode(std::span<const int32_t> ids) const override;
  void decode_all(std::span<const int32_t> ids, ByteBuffer& out) const override;
  std::string name() const override { return name_; }
  std::string hash() const override;

  /// Encodes a pretoken that arrives in parts. It must not be one of unmerged().
  LongPiece long_pretoken(TakeIds take) const { return {rules_.encoder, std::move(take)}; }

  /// The short pieces that the token cache holds from the start: some of the tokens whose text is encoded as
  /// just their own id. That is not true of every token.
  std::span<const PieceSeed> seeds() const { return seeds_.span(); }
  /// In ascending order, the tokens that replace a pretoken of the same text without merging: those of
  /// `whole`, or with ignore_merges those that merging would not give. They are few, so looking for them
  /// costs little.
  std::vector<int32_t> unmerged() const;
  /// How this tokenizer finds pretokens.
  const FindPretokens& find_pretokens() const { return find_pretokens_; }

 private:
  struct Scratch;
  class Lease;
  class TextBatch;
  using Scratches = IdlePool<Scratch>;

  /// A destination for ids: they are appended to `ids`, which is handed to `take` (if there is one) and
  /// cleared whenever it is long.
  struct Sink {
    IdBuffer& ids;
    const TakeIds* take = nullptr;
    void append(std::span<const int32_t> more) const;
    void hand_over_if_long() const;
  };
  template <class Plain, class Special>
  void split_at_added(std::string_view utf8, const Plain& plain, const Special& special) const;
  void encode_with(Scratch&, std::string_view utf8, Sink) const;
  template <class Take>
  void merge_tokens(size_t count, const Take& take) const;
  std::vector<PieceSeed> find_seeds() const;
  void help_to_seed() const;
  void take_whole(const std::vector<int32_t>& ids);
  std::vector<int32_t> find_unmerged(const std::vector<bool>& literal) const;
  void encode_plain(Scratch&, std::string_view utf8, Sink) const;
  void encode_found(Scratch&, std::string_view utf8, const FindPretokens& find, Sink) const;
  void encode_dropping(Scratch&, std::string_view utf8, const FindPretokens& find, Sink) const;
  bool has_dropped(std::string_view text) const;
  void encode_long(Scratch&, std::string_view utf8, std::span<uint32_t> ends, Sink) const;
  void encode_giant(Scratch&, std::string_view pretoken, Sink) const;

  std::string name_;
  TokenTexts tokens_;
  PieceRules rules_;
  mutable std::optional<TokenCache> memory_;  // shared by all threads
  FindPretokens find_pretokens_;
  std::shared_ptr<const TextCutter> cutter_;
  std::optional<size_t> look_ahead_;
  std::string dropped_, mark_;
  SharedArray<PieceSeed> seeds_;
  AddedTokens raw_added_, normalized_added_;
  int32_t eod_;
  std::string rule_names_, hash_;
  size_t to_seed_ = 0;                     // number of seeds that memory_ gets: all or none
  mutable std::atomic<size_t> seeded_{0};  // number of those that threads have added or are adding
  mutable Scratches scratches_;
};

}  // namespace megalith
