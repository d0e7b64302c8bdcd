#include "libcore/text/core_tokenizer.h"

#include "libcore/base/error.h"

namespace megalith {
namespace {

/// Encodes each text by itself.
class OneByOne final : public CoreTokenizer::Batch {
 public:
  OneByOne(const CoreTokenizer& tokenizer, IdBuffer& out) : tokenizer_(tokenizer), out_(out) {}
  void add(std::string_view text) override { tokenizer_.encode_to(text, out_); }
  void put(std::span<const int32_t> ids) override { out_.append(ids); }
  void finish() override {}

 private:
  const CoreTokenizer& tokenizer_;
  IdBuffer& out_;
};

}  // namespace

std::unique_ptr<CoreTokenizer::Batch> CoreTokenizer::batch(IdBuffer& out) const {
  return std::make_unique<OneByOne>(*this, out);
}

void CoreTokenizer::encode_all(std::span<const std::string_view> texts, IdBuffer& out) const {
  encode_all_with([](std::string_view text, const auto& plain, const auto&) { plain(text); }, texts, out);
}

void CoreTokenizer::fail_without_end(const std::string& name) {
  fail(ErrorKind::kData, name,
       ": the tokenizer's files name no end-of-document token; wanted \"eos_token\" in ",
       "tokenizer_config.json, or a token \"<|endoftext|>\"; name it with --eod-token TEXT");
}

}  // namespace megalith
