#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libcore/finetune/records.h"
#include "libcore/text/tokenizer.h"

namespace megalith {

/// The maximum lengths of an example, in tokens.
struct LengthLimits {
  int64_t source = 0;  // maximum for a prompt; a longer one loses its beginning; 0: no limit
  int64_t target = 0;  // maximum for an answer; a longer one loses its end; 0: no limit
  int64_t whole = 0;   // maximum for a record; a longer one loses its end; 0: no limit
};

/// A tokenizer that encodes texts without special tokens, and returns the special tokens separately.
class PlainTokenizer {
 public:
  /// `eos`: the id that ends an answer; absent: the tokenizer's own.
  explicit PlainTokenizer(std::unique_ptr<Tokenizer> tokenizer, std::optional<int32_t> eos = {});

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  std::vector<int32_t> encode(const std::string& text) const;
  /// Special tokens before a text, such as <s>.
  std::span<const int32_t> before() const { return tokenizer_->around().before; }
  int32_t eos() const { return eos_; }

 private:
  std::unique_ptr<Tokenizer> tokenizer_;
  int32_t eos_;
};

/// Counts of the records that were read and of those that were truncated, for a report.
struct ExampleReport {
  int64_t records = 0, tokens = 0, counted = 0;          // counted: number of tokens that are learned
  int64_t shortest = 0, longest = 0;                     // tokens of the shortest and of the longest record
  int64_t truncated_prompts = 0, truncated_answers = 0;  // examples with a truncated prompt, answer
  int64_t without_answer = 0;  // number of records left out because nothing of the answer remained
};

/// Tokenized records, in order.
class Examples {
 public:
  struct Example {
    std::span<const int32_t> ids;
    std::span<const uint8_t> counts;  // for each id, whether it is learned
    /// The number of positions that the example needs in the model: each id but the last is read, each id but
    /// the first is predicted.
    int64_t rows() const { return static_cast<int64_t>(ids.size()) - 1; }
    int64_t counted() const;  // number of learned ids among those that are predicted
  };

  /// Tokenizes prompt and answer of a record separately, and adds them as one example. The beginning of the
  /// text is marked as the tokenizer does it; the end of an answer is marked with the end token, unless the
  /// answer was truncated. If nothing remains of a record's answer, the record is only counted in the report.
  void add(const Record&, const PlainTokenizer&, const LengthLimits&);
  /// Adds two examples, the chosen one first. Adds neither if nothing remains of one of the answers.
  void add(const RecordPair&, const PlainTokenizer&, const LengthLimits&);

  int64_t size() const { return static_cast<int64_t>(begins_.size()) - 1; }
  Example operator[](int64_t i) const;
  const ExampleReport& report() const { return report_; }
  /// Bytes of memory that the examples hold.
  size_t bytes() const;
  /// A hash that covers the ids, which of them are learned, and where the examples begin.
  uint64_t hash() const;

 private:
  struct Tokens;
  void note_truncation(const Tokens&);
  void append(const Tokens&);

  std::vector<int32_t> ids_;
  std::vector<uint8_t> counts_;
  std::vector<int64_t> begins_ = {0};
  ExampleReport report_;
};

/// A record split into its prompt and its last answer.
struct Question {
  std::string prompt, answer;  // as texts
  std::vector<int32_t> ids;    // ids of the prompt
  bool cut = false;            // whether the prompt was longer than LengthLimits::whole
};
/// Splits a record into prompt and answer. The prompt is tokenized and truncated as in an example. If it is
/// still longer than limits.whole, more of its beginning is dropped.
Question question_of(const Record&, const PlainTokenizer&, const LengthLimits&);

/// "train.json: 52,002 records, 12 to 512 tokens (mean 98.4), 35.2 % of them learned; 3 answers and 0 prompts
/// truncated".
std::string report_line(const std::string& name, const ExampleReport&);

}  // namespace megalith
