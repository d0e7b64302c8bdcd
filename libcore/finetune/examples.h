#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libcore/finetune/records.h"
#include "libcore/text/tokenizer.h"

namespace megalith {

/// How long an example may be.
struct LengthLimits {
  int64_t source = 0;  // tokens of a prompt, whose beginning is cut; 0: no limit
  int64_t target = 0;  // tokens of an answer, whose end is cut; 0: no limit
  int64_t whole = 0;   // tokens of a record, whose end is cut; 0: no limit
};

/// A tokenizer that encodes a text without special tokens, and gives the special tokens separately.
class PlainTokenizer {
 public:
  /// `eos`: the id that ends an answer; absent: the tokenizer's own.
  explicit PlainTokenizer(std::unique_ptr<Tokenizer> tokenizer, std::optional<int32_t> eos = {});

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  std::vector<int32_t> encode(const std::string& text) const;
  std::span<const int32_t> before() const { return tokenizer_->around().before; }  // such as <s>
  int32_t eos() const { return eos_; }

 private:
  std::unique_ptr<Tokenizer> tokenizer_;
  int32_t eos_;
};

/// What became of the records, for a report.
struct ExampleReport {
  int64_t records = 0, tokens = 0, counted = 0;  // counted: tokens that are learned
  int64_t shortest = 0, longest = 0;             // tokens of a record
  int64_t cut_sources = 0, cut_answers = 0;      // examples with a cut prompt, with a cut answer
  int64_t without_answer = 0;                    // records that were left out: nothing of the answer remained
};

/// Tokenized records, in order.
class Examples {
 public:
  struct Example {
    std::span<const int32_t> ids;
    std::span<const uint8_t> counts;  // for each id, whether it is learned
    /// How many positions of the model the example takes: every id but the last is read, every id but the
    /// first is predicted.
    int64_t rows() const { return static_cast<int64_t>(ids.size()) - 1; }
    int64_t counted() const;  // learned ids among those that are predicted
  };

  /// Tokenizes a record: prompt and answer separately. The beginning of the text is marked as the tokenizer
  /// does it, the end of an answer by the end token, unless the answer was cut. A record of whose answer
  /// nothing remains is counted in the report and left out.
  void add(const Record&, const PlainTokenizer&, const LengthLimits&);
  /// Adds two examples, the chosen one first. Adds neither if nothing remains of one of the answers.
  void add(const RecordPair&, const PlainTokenizer&, const LengthLimits&);

  int64_t size() const { return static_cast<int64_t>(begins_.size()) - 1; }
  Example operator[](int64_t i) const;
  const ExampleReport& report() const { return report_; }
  uint64_t hash() const;  // of all ids, of which are learned, and of where the examples begin

 private:
  struct Tokens;
  void note_cuts(const Tokens&);
  void append(const Tokens&);

  std::vector<int32_t> ids_;
  std::vector<uint8_t> counts_;
  std::vector<int64_t> begins_ = {0};
  ExampleReport report_;
};

/// A record split into its prompt and its last answer.
struct Question {
  std::string prompt, answer;  // as texts
  std::vector<int32_t> ids;    // of the prompt
  bool cut = false;            // whether the prompt was longer than LengthLimits::whole
};
/// The prompt is tokenized and cut as in an example. If it is still longer than limits.whole, its beginning
/// is cut further.
Question question_of(const Record&, const PlainTokenizer&, const LengthLimits&);

/// "train.json: 52,002 records, 12 to 512 tokens (mean 98.4), 35.2 % of them learned; 3 answers cut …".
std::string report_line(const std::string& name, const ExampleReport&);

}  // namespace megalith
