#pragma once

#include "libcore/text/tokenizer.h"

namespace megalith {

/// Megatron's NullTokenizer: a text is a list of decimal ids, separated by single blanks. There are `size`
/// ids, and `size` itself ends a document. encode() throws kData for anything else.
class NullTokenizer : public Tokenizer {
 public:
  explicit NullTokenizer(int size) : size_(size) {}
  int vocab_size() const override { return size_ + 1; }
  int eod() const override { return size_; }
  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  std::string name() const override { return "NullTokenizer"; }
  std::string hash() const override;

 private:
  int size_;
};

/// A line for the log that says why a NullTokenizer has one id more than --vocab-size. Empty for another
/// tokenizer.
std::string null_vocabulary_note(const Tokenizer& tokenizer);

}  // namespace megalith
