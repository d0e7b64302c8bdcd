// libmegalith_sentencepiece.so: see sentencepiece_library.h.

#include <memory>
#include <string>

#include <sentencepiece_processor.h>

#include "libcore/base/error.h"
#include "libcore/base/utf8.h"
#include "libcore/text/identity_hash.h"
#include "libcore/text/tokenizer.h"

namespace megalith {
namespace {

void check(const sentencepiece::util::Status& status, const std::string& where) {
  if (!status.ok()) fail(ErrorKind::kData, where, ": ", status.error_message());
}

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string type, const std::string& path, std::string_view bytes)
      : type_(std::move(type)), path_(path) {
    const auto status = processor_.LoadFromSerializedProto(bytes);
    if (!status.ok()) fail(ErrorKind::kData, path, ": not a SentencePiece model: ", status.error_message());
  }

  int vocab_size() const override { return processor_.GetPieceSize(); }

  int eod() const override {
    if (processor_.eos_id() < 0) fail(ErrorKind::kData, path_, ": the model has no end token (eos_id is -1)");
    return processor_.eos_id();
  }

  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override {
    std::vector<int> found;
    check(processor_.Encode(utf8, &found), path_);
    ids.insert(ids.end(), found.begin(), found.end());
  }

  std::string decode(std::span<const int32_t> ids) const override {
    for (int32_t id : ids)
      if (id < 0 || id >= vocab_size())
        fail(ErrorKind::kData, "token id ", id, " is not in the vocabulary; ids are 0 to ", vocab_size() - 1);
    std::string text;
    check(processor_.Decode(std::vector<int>(ids.begin(), ids.end()), &text), path_);
    return replace_invalid_utf8(text);
  }

  std::string name() const override { return type_; }

  std::string hash() const override {
    IdentityHash hash;
    hash.add("SentencePiece");
    hash.add(processor_.serialized_model_proto());
    return hash.hex();
  }

 private:
  std::string type_, path_;
  sentencepiece::SentencePieceProcessor processor_;
};

}  // namespace

}  // namespace megalith

extern "C" {

/// The caller owns the result. Throws kData.
__attribute__((visibility("default"))) megalith::Tokenizer* megalith_sentencepiece_tokenizer(
    const std::string& type, const std::string& path, std::string_view bytes) {
  return std::make_unique<megalith::SentencePieceTokenizer>(type, path, bytes).release();
}
}
