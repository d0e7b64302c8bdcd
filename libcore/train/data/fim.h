#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/config/fim_config.h"
#include "libcore/text/tokenizer.h"

namespace megalith {

/// The random decisions about one sample, in the order in which Megatron takes them.
class FimDraws {
 public:
  virtual ~FimDraws() = default;
  /// Whether something of this probability happens.
  virtual bool happens(double probability) = 0;
  /// Two independent whole numbers in [0, max], in any order.
  virtual std::array<int64_t, 2> two_up_to(int64_t max) = 0;
};

/// Draws that depend on nothing but the run's seed, the part of the data (0: train, 1: valid, …) and the
/// number of the sample there. So they are equal in every layout and after a resume. (Megatron draws from one
/// stream in the order in which a worker happens to read.)
class SampleDraws final : public FimDraws {
 public:
  SampleDraws(int64_t seed, uint32_t part, int64_t sample);
  bool happens(double probability) override;
  std::array<int64_t, 2> two_up_to(int64_t max) override;

 private:
  std::array<uint64_t, 2> next();

  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
};

/// Fill-in-the-middle, as Megatron-LM's GPTFIMDataset applies it to a sample (training/datasets/
/// fim_dataset.py; Bavarian et al., arXiv:2207.14255): the text of a document, or of a fragment of it, is cut
/// at two of its characters and becomes PREFIX prefix SUFFIX suffix MIDDLE middle, or PREFIX SUFFIX suffix
/// MIDDLE prefix middle. As there, the end of a document without tokens is left out, and what follows the
/// last end of a sample is changed even if it is empty. The special tokens of this class, and those that the
/// tokenizer puts around a text, are left out of a document that is changed; other special tokens stay
/// (there, they are left out, too).
class FimPermutation {
 public:
  /// The tokenizer must outlive it. kUsage for a token that the tokenizer does not have.
  FimPermutation(const FimConfig&, const Tokenizer&);

  /// Permutes a sample in place: truncates what becomes too long, and fills what becomes too short with
  /// pad(). Returns the number of ids before the filling. kData for an id that the tokenizer does not know.
  size_t permute(std::span<int32_t> ids, FimDraws&) const;

  int32_t pad() const { return pad_; }

 private:
  using Ids = std::vector<int32_t>;
  using View = std::span<const int32_t>;

  int32_t token(const char* option, const std::string& text) const;
  Ids document(View ids, FimDraws&) const;
  Ids piece(View ids, double rate, FimDraws&) const;
  std::string text_of(View ids) const;

  const Tokenizer& tokenizer_;
  FimConfig config_;
  int32_t prefix_, middle_, suffix_, pad_, eod_;
  std::optional<int32_t> split_;
  Ids left_out_;  // of the text of a document
};

}  // namespace megalith
