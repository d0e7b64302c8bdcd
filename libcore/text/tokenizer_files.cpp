#include "libcore/text/tokenizer_files.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/io/files/file.h"
#include "libcore/text/saved_tokenizer.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

constexpr std::array kTokenizerFiles = {"tokenizer.json",
                                        "vocab.json",
                                        "merges.txt",
                                        "tokenizer.model",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "chat_template.jinja"};

enum class Form { kVocab, kMerges, kTokenizerJson, kSentencePiece, kTikToken, kUnknown };

// The names of SentencePiece's and tiktoken's files in a model's folder, the likeliest first.
constexpr const char* kModelNames[] = {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model",
                                       "tiktoken.model", "tekken.json"};

constexpr const char* kGpt2 = "GPT2BPETokenizer";
constexpr const char* kHuggingFace = "HuggingFaceTokenizer";
constexpr const char* kLlama2 = "Llama2Tokenizer";
constexpr const char* kTikToken = "TikTokenizer";

bool is_sentencepiece_type(const std::string& type) {
  return type == kLlama2 || type == "GPTSentencePieceTokenizer";
}

/// The beginning of a file, as much as is needed to recognize its form: the file may be large.
std::string beginning(const std::string& path) {
  constexpr size_t kEnough = 4096;
  std::ifstream file(path, std::ios::binary);
  std::string text(kEnough, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  if (text.empty() && !file.eof()) fail(ErrorKind::kIo, path, ": cannot be read");
  return text;
}

std::string_view first_line(std::string_view text) {
  return trim(text.substr(0, text.find('\n')));
}

/// Whether the first member of a JSON object is a number: it is in a vocabulary, which maps tokens to
/// numbers, but in a tokenizer.json it is a string, null or an object.
bool first_value_is_number(std::string_view object) {
  size_t at = object.find('"');
  if (at == std::string_view::npos) return false;
  for (++at; at < object.size() && object[at] != '"'; ++at)
    if (object[at] == '\\') ++at;
  at = object.find_first_not_of(" \t\r\n:", at + 1);
  return at < object.size() && std::isdigit(static_cast<unsigned char>(object[at]));
}

/// Whether an object begins as Mistral's tekken.json does.
bool is_tekken(std::string_view object) {
  return trim(object.substr(1)).starts_with("\"config\"");
}

/// Whether the line is like "IQ== 0": bytes in base64, and their rank.
bool is_rank_line(std::string_view line) {
  const size_t blank = line.find(' ');
  if (blank == std::string_view::npos || blank == 0) return false;
  const auto base64 = [](unsigned char c) { return std::isalnum(c) || c == '+' || c == '/' || c == '='; };
  const std::string_view bytes = line.substr(0, blank), rank = line.substr(blank + 1);
  return bytes.size() % 4 == 0 && std::all_of(bytes.begin(), bytes.end(), base64) &&
         parse_int(rank) == std::optional<int64_t>(0);
}

/// Whether the bytes are a protobuf whose first field is a message (a piece) that begins with a string.
bool is_sentencepiece(std::string_view bytes) {
  constexpr char kTextField = 0x0A;
  return bytes.size() > 4 && bytes[0] == kTextField && bytes[2] == kTextField && bytes[1] > bytes[3];
}

Form form_of(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (is_sentencepiece(text)) return Form::kSentencePiece;
  if (begin == std::string_view::npos) return Form::kUnknown;
  if (text[begin] == '{') {
    const std::string_view object = text.substr(begin);
    if (is_tekken(object)) return Form::kTikToken;
    return first_value_is_number(object) ? Form::kVocab : Form::kTokenizerJson;
  }
  if (text[begin] == '[' && text.find("token_bytes") != std::string_view::npos) return Form::kTikToken;
  const std::string_view line = first_line(text);
  if (is_rank_line(line)) return Form::kTikToken;
  const bool pair = std::count(line.begin(), line.end(), ' ') == 1;
  if (line.starts_with("#version") ||
      (pair && replace_invalid_utf8(text.substr(0, 256)) == text.substr(0, 256)))
    return Form::kMerges;
  return Form::kUnknown;
}

TokenizerFiles gpt2(const std::string& vocab, const std::string& merges) {
  for (const std::string& path : {vocab, merges})
    if (!file_exists(path))
      fail(ErrorKind::kNoInput, path,
           ": is not there; GPT-2's tokenizer has two files, vocab.json and merges.txt, "
           "in one folder, or give --vocab-file and --merge-file");
  return {.type = kGpt2, .vocab = vocab, .merges = merges, .model = {}};
}

constexpr std::string_view kVocab = "vocab.json", kMerges = "merges.txt";

/// The other one of GPT-2's two files: "gpt2-merges.txt" for "gpt2-vocab.json" if it exists, else the file
/// with the usual name in the same folder.
std::string other_file(const std::string& path, std::string_view own, std::string_view other) {
  const fs::path folder = fs::path(path).parent_path();
  std::string name = fs::path(path).filename().string();
  if (name.ends_with(own)) {
    name.replace(name.size() - own.size(), own.size(), other);
    if (file_exists((folder / name).string())) return (folder / name).string();
  }
  return (folder / other).string();
}

/// The only file of `folder` whose name ends with `ending`; nothing if there is none, or more than one.
std::optional<std::string> only_file(const std::string& folder, std::string_view ending) {
  std::optional<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (!entry.path().filename().string().ends_with(ending)) continue;
    if (found) return std::nullopt;
    found = entry.path().string();
  }
  return found;
}

/// Whether a tokenizer of this type is read from a model file (of SentencePiece or tiktoken).
bool is_of_model_file(const std::string& type) {
  return is_sentencepiece_type(type) || type == kTikToken;
}

/// `type` says which of two tokenizers a SentencePiece file is for, since the file does not.
TokenizerFiles recognize_file(const std::string& path, const std::string& type) {
  switch (form_of(beginning(path))) {
    case Form::kVocab:
      return gpt2(path, other_file(path, kVocab, kMerges));
    case Form::kMerges:
      return gpt2(other_file(path, kMerges, kVocab), path);
    case Form::kTokenizerJson:
      return {.type = kHuggingFace, .vocab = {}, .merges = {}, .model = path};
    case Form::kSentencePiece:
      return {.type = is_sentencepiece_type(type) ? type : kLlama2, .vocab = {}, .merges = {}, .model = path};
    case Form::kTikToken:
      return {.type = kTikToken, .vocab = {}, .merges = {}, .model = path};
    case Form::kUnknown:
      break;
  }
  fail(ErrorKind::kData, path,
       ": is not a tokenizer file; wanted a tokenizer.json, vocab.json or merges.txt, a "
       "SentencePiece model, tiktoken's ranks, or the folder that holds one of them");
}

}  // namespace

bool is_tokenizer_file(std::string_view name) {
  return std::find(kTokenizerFiles.begin(), kTokenizerFiles.end(), name) != kTokenizerFiles.end();
}

std::span<const char* const> tokenizer_file_names() {
  return kTokenizerFiles;
}

TokenizerFolder::TokenizerFolder(std::vector<std::pair<std::string, std::string>> files)
    : path(files.front().second), named(files.begin(), files.end()) {}

bool TokenizerFolder::has(const std::string& name) const {
  return named.empty() ? file_exists(file(name)) : named.contains(name);
}

std::string TokenizerFolder::file(const std::string& name) const {
  const auto at = named.find(name);
  return at == named.end() ? (fs::path(path) / name).string() : at->second;
}

std::optional<TokenizerFiles> find_tokenizer(const TokenizerFolder& folder, const std::string& type) {
  const auto has = [&](const char* name) {
    const std::string path = folder.file(name);
    if (!folder.has(name)) return false;
    // Reading a FIFO would block: nobody would write to it.
    if (!fs::is_regular_file(path)) fail(ErrorKind::kNoInput, path, ": is not a regular file");
    return true;
  };
  const bool whole = has("tokenizer.json"), gpt2_files = has("vocab.json") && has("merges.txt");
  if (gpt2_files && (!whole || type == kGpt2))
    return gpt2(folder.file("vocab.json"), folder.file("merges.txt"));
  for (const char* name : kModelNames) {
    if (!has(name) || (whole && !is_of_model_file(type))) continue;
    return recognize_file(folder.file(name), type);
  }
  if (!whole) return std::nullopt;
  return TokenizerFiles{.type = kHuggingFace,
                        .vocab = {},
                        .merges = {},
                        .model = folder.named.empty() ? folder.path : folder.file("tokenizer.json")};
}

std::optional<TokenizerFiles> recognize_tokenizer(const std::string& path, const std::string& type) {
  if (!file_exists(path)) return std::nullopt;
  if (!fs::is_directory(path)) return recognize_file(path, type);
  if (auto found = find_tokenizer(path, type)) return found;
  const std::string vocab = (fs::path(path) / "vocab.json").string(),
                    merges = (fs::path(path) / "merges.txt").string();
  if (file_exists(vocab) || file_exists(merges)) return gpt2(vocab, merges);  // fails if one is missing
  for (const std::string_view ending : {kVocab, std::string_view(".tiktoken")})
    if (const auto file = only_file(path, ending)) return recognize_file(*file, type);
  if (const std::string own = (fs::path(path) / kTokenizerFolder).string(); fs::is_directory(own))
    return recognize_tokenizer(own, type);  // a checkpoint's folder
  fail(
      ErrorKind::kNoInput, path,
      ": holds no tokenizer; looked for tokenizer.json, vocab.json with merges.txt, one NAME-vocab.json with "
      "NAME-merges.txt, tokenizer.model, spiece.model, sentencepiece.bpe.model, tiktoken.model, tekken.json, "
      "one NAME.tiktoken, and a folder \"tokenizer\" of these");
}

Json with_own_tokenizer(Json args, const std::string& folder) {
  const Json* type = args.find("tokenizer_type");
  if (type && type->is_string() && type->as_string() == "NullTokenizer") return args;
  for (const std::string& place : {concat(folder, "/", kTokenizerFolder), folder}) {
    try {
      if (!find_tokenizer(place)) continue;
    } catch (const Error&) {
      continue;  // the folder holds a file that is not a tokenizer
    }
    args.set("vocab_file", "");
    args.set("merge_file", "");
    args.set("tokenizer_model", place);
    break;
  }
  return args;
}

}  // namespace megalith
