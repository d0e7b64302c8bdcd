#include "libcore/text/formats/make_tokenizer.h"

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/cache/hf_cache.h"
#include "libcore/io/files/file.h"
#include "libcore/text/formats/byte_level_tokenizer.h"
#include "libcore/text/formats/gpt2_files.h"
#include "libcore/text/formats/hf_json.h"
#include "libcore/text/formats/null_tokenizer.h"
#include "libcore/text/formats/sentencepiece_files.h"
#include "libcore/text/formats/tiktoken_files.h"
#include "libcore/text/saved_tokenizer.h"

namespace megalith {
namespace {

void need(const std::string& value, const TokenizerFiles& files, const char* option, const char* what) {
  if (value.empty()) fail(ErrorKind::kUsage, "--tokenizer-type ", files.type, " needs ", option, ": ", what);
}

void refuse_special_tokens(const TokenizerFiles& files, const char* why) {
  if (!files.special_tokens.empty())
    fail(ErrorKind::kUsage, "--tokenizer-special-tokens cannot be given with --tokenizer-type ", files.type,
         ": ", why);
}

void refuse_eod(const TokenizerFiles& files, const char* why) {
  if (!files.eod.empty())
    fail(ErrorKind::kUsage, "--eod-token cannot be given with --tokenizer-type ", files.type, ": ", why);
}

using Make = std::unique_ptr<Tokenizer> (*)(const TokenizerFiles&);

std::unique_ptr<Tokenizer> make_gpt2(const TokenizerFiles& files) {
  need(files.vocab, files, "--vocab-file", "GPT-2's vocab.json");
  need(files.merges, files, "--merge-file", "GPT-2's merges.txt");
  return make_gpt2_tokenizer(files.vocab, files.merges, {.special = files.special_tokens, .eod = files.eod});
}

std::unique_ptr<Tokenizer> make_hf(const TokenizerFiles& files) {
  need(files.model, files, "--tokenizer-model", "a tokenizer.json, or the folder that holds it");
  if (!file_exists(files.model))
    fail(ErrorKind::kNoInput, files.model, ": there is no such file or folder", hub_remedy(files.model));
  return read_hf_tokenizer(
      files.model, {.around = files.hf_special_tokens, .special = files.special_tokens, .eod = files.eod});
}

std::unique_ptr<Tokenizer> make_sentencepiece(const TokenizerFiles& files) {
  need(files.model, files, "--tokenizer-model", "a SentencePiece model");
  refuse_special_tokens(files, "a SentencePiece model has the tokens that it was trained with");
  refuse_eod(files, "a SentencePiece model names its own");
  return read_sentencepiece_tokenizer(files.type, files.model);
}

std::unique_ptr<Tokenizer> make_tiktoken(const TokenizerFiles& files) {
  need(files.model, files, "--tokenizer-model", "tiktoken's ranks, a JSON list or base64");
  refuse_eod(files, "it is </s>, as in Megatron-LM");
  return make_tiktoken_tokenizer(files.model, {.pattern = files.tiktoken_pattern,
                                               .special_tokens = files.tiktoken_special_tokens,
                                               .vocab_size = files.vocab_size,
                                               .special = files.special_tokens});
}

std::unique_ptr<Tokenizer> make_null(const TokenizerFiles& files) {
  if (files.vocab_size < 1)
    fail(ErrorKind::kUsage, "--tokenizer-type NullTokenizer needs --vocab-size of at least 1, found ",
         files.vocab_size);
  refuse_special_tokens(files, "its texts are ids");
  refuse_eod(files, "it is the max id");
  return std::make_unique<NullTokenizer>(files.vocab_size);
}

struct Kind {
  const char* name;
  Make make;
};
constexpr Kind kKinds[] = {
    {"GPT2BPETokenizer", make_gpt2},   {"GPTSentencePieceTokenizer", make_sentencepiece},
    {"HuggingFaceTokenizer", make_hf}, {"Llama2Tokenizer", make_sentencepiece},
    {"NullTokenizer", make_null},      {"TikTokenizer", make_tiktoken},
};

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerFiles& files) {
  for (const std::string& token : files.special_tokens)
    if (token.empty()) fail(ErrorKind::kUsage, "--tokenizer-special-tokens: a token has no characters");
  std::vector<std::string> names;
  if (files.type.empty())
    fail(ErrorKind::kUsage,
         "no tokenizer is given; give --tokenizer-model FILE or DIR, or --vocab-file and --merge-file");
  for (const Kind& kind : kKinds) {
    if (files.type == kind.name) {
      for (const std::string& path : {files.vocab, files.merges, files.model})
        if (!path.empty()) check_saved_tokenizer(path);
      return kind.make(files);
    }
    names.emplace_back(kind.name);
  }
  const auto close = nearest(files.type, names);
  fail(ErrorKind::kUsage, "--tokenizer-type ", quote(files.type), " is not known",
       close ? "; did you mean " + *close : "", "; wanted one of ", join(names, ", "));
}

}  // namespace megalith
