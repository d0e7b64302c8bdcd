#include "libcore/convert/targets/gguf_tokenizer.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/json/json_names.h"
#include "libcore/text/formats/sentencepiece/sentencepiece_table.h"

namespace megalith {
namespace {

// llama.cpp's token types have the numbers of SentencePiece's.
using Table = SentencePieceTable;

struct Tokens {
  std::vector<std::string> texts;
  std::vector<int32_t> types;

  explicit Tokens(int64_t vocabulary) : types(static_cast<size_t>(vocabulary), Table::kUnused) {
    for (int64_t id = 0; id < vocabulary; ++id) texts.push_back(concat("[PAD", id, ']'));
  }
  void set(int64_t id, std::string text, int32_t type) {
    texts[static_cast<size_t>(id)] = std::move(text);
    types[static_cast<size_t>(id)] = type;
  }
  void add_to(GgufMetadata& metadata) const {
    metadata.texts("tokenizer.ggml.tokens", texts);
    metadata.integers("tokenizer.ggml.token_type", types);
  }
};

// The pattern of a "Split" pre-tokenizer, and llama.cpp's name for it.
struct KnownPattern {
  std::string_view name, pattern;
};
constexpr KnownPattern kPatterns[] = {
    {"llama-bpe",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"qwen2",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};

const std::string& type_of(const Json& stage) {
  return stage["type"].as_string();
}

bool splits_by_gpt2(const Json& stage) {
  const Json* regex = stage.find("use_regex");
  return type_of(stage) == "ByteLevel" && (!regex || !regex->is_bool() || regex->as_bool());
}

}  // namespace

std::optional<std::string_view> known_split(const Json& stage) {
  if (splits_by_gpt2(stage)) return "gpt-2";
  if (type_of(stage) != "Sequence" || stage["pretokenizers"].as_array().empty()) return {};
  const Json& first = stage["pretokenizers"].as_array().front();
  if (type_of(first) != "Split") return {};
  const Json* pattern = first["pattern"].find("Regex");
  for (const auto& [name, known] : kPatterns)
    if (pattern && pattern->is_string() && pattern->as_string() == known) return name;
  return {};
}

namespace {

void add_bpe(GgufMetadata& metadata, const Json& json, const std::string& where, int64_t vocabulary) {
  const auto split = known_split(json["pre_tokenizer"]);
  if (!split)
    fail(ErrorKind::kData, where, ": llama.cpp has no name known here for its pre-tokenizer ",
         json["pre_tokenizer"].dump());
  metadata.text("tokenizer.ggml.model", "gpt2");
  metadata.text("tokenizer.ggml.pre", *split);
  Tokens tokens(vocabulary);
  for (const auto& [token, id] : json["model"]["vocab"].as_object())
    tokens.set(id.as_int(), token, Table::kNormal);
  if (const Json* added = json.find("added_tokens"); added && added->is_array())
    for (const Json& token : added->as_array())
      tokens.set(token["id"].as_int(), token["content"].as_string(),
                 token["special"].as_bool() ? Table::kControl : Table::kUserDefined);
  tokens.add_to(metadata);
  std::vector<std::string> merges;
  for (const Json& merge : json["model"]["merges"].as_array())
    merges.push_back(merge.is_string() ? merge.as_string()
                                       : concat(merge.as_array().at(0).as_string(), ' ',
                                                merge.as_array().at(1).as_string()));
  metadata.texts("tokenizer.ggml.merges", merges);
}

void add_sentencepiece(GgufMetadata& metadata, const Table& table, const std::string& where,
                       int64_t vocabulary) {
  if (static_cast<int64_t>(table.tokens.size()) > vocabulary)
    fail(ErrorKind::kData, where, ": tokenizer.model has ", table.tokens.size(),
         " pieces, but the model's vocabulary ", vocabulary);
  metadata.text("tokenizer.ggml.model", "llama");
  metadata.text("tokenizer.ggml.pre", "default");
  Tokens tokens(vocabulary);
  std::vector<float> scores(static_cast<size_t>(vocabulary), -10000);
  for (size_t id = 0; id < table.tokens.size(); ++id) {
    const Table::Token& token = table.tokens[id];
    tokens.set(static_cast<int64_t>(id), token.text, token.type);
    scores[id] = token.score;
  }
  tokens.add_to(metadata);
  metadata.floats("tokenizer.ggml.scores", scores);
  const auto unknown = std::find_if(table.tokens.begin(), table.tokens.end(),
                                    [](const Table::Token& p) { return p.type == Table::kUnknown; });
  if (unknown != table.tokens.end())
    metadata.u32("tokenizer.ggml.unknown_token_id", unknown - table.tokens.begin());
}

}  // namespace

void add_gguf_tokenizer(GgufMetadata& metadata, const HfTokenizerFiles& tokenizer,
                        const TokenizerFolder& from, int64_t vocabulary) {
  const auto& files = tokenizer.files;
  const bool sentencepiece = files.contains("tokenizer.model");
  bool adds_bos = sentencepiece;  // LLaMA's default, which tokenizer_config.json may change
  if (sentencepiece) {
    const std::string name = from.file("tokenizer.model");
    const Table table = parse_sentencepiece_table(files.at("tokenizer.model"), name);
    check_token_texts(table, name);
    add_sentencepiece(metadata, table, from.path, vocabulary);
  } else if (files.contains("tokenizer.json")) {
    const Json json = Json::parse(files.at("tokenizer.json"), "tokenizer.json");
    const JsonNames names(json, from.file("tokenizer.json"));
    add_bpe(metadata, json, from.path, vocabulary);
  } else {
    fail(ErrorKind::kData, from.path,
         ": holds neither tokenizer.json nor tokenizer.model, which llama.cpp's file needs");
  }
  if (const auto file = files.find("tokenizer_config.json"); file != files.end()) {
    const Json settings = Json::parse(file->second, file->first);
    if (const Json* adds = settings.find("add_bos_token"); adds && adds->is_bool())
      adds_bos = adds->as_bool();
    if (const Json* chat = settings.find("chat_template"); chat && chat->is_string())
      metadata.text("tokenizer.chat_template", chat->as_string());
  }
  if (const auto chat = files.find("chat_template.jinja"); chat != files.end())
    metadata.text("tokenizer.chat_template", chat->second);
  if (tokenizer.ids.bos) metadata.u32("tokenizer.ggml.bos_token_id", *tokenizer.ids.bos);
  if (tokenizer.ids.eos) metadata.u32("tokenizer.ggml.eos_token_id", *tokenizer.ids.eos);
  metadata.boolean("tokenizer.ggml.add_bos_token", adds_bos);
}

}  // namespace megalith
