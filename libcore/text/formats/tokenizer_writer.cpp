#include "libcore/text/formats/tokenizer_writer.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"

namespace megalith {
namespace {

constexpr std::array<std::string_view, 5> kFiles = {"merges.txt", "special_tokens_map.json", "tokenizer.json",
                                                    "tokenizer_config.json", "vocab.json"};

void refuse_other_files(const std::string& folder) {
  if (!std::filesystem::exists(folder)) return;
  if (!std::filesystem::is_directory(folder))
    fail(ErrorKind::kUsage, folder, ": is a file; wanted a folder to write");
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (std::find(kFiles.begin(), kFiles.end(), name) == kFiles.end())
      fail(ErrorKind::kUsage, folder, ": holds ", quote(name),
           ", which is not part of a tokenizer; give a separate folder");
  }
}

std::string vocab_json(const TrainedBpe& trained) {
  std::string out = "{";
  for (size_t id = 0; id < trained.tokens.size(); ++id)
    out += concat(id ? "," : "", json_quote(trained.tokens[id]), ":", id);
  return out + "}";
}

std::string merges_txt(const TrainedBpe& trained) {
  std::string out = "#version: 0.2\n";
  for (const auto& merge : trained.merges)
    out += trained.tokens[static_cast<size_t>(merge.left)] + " " +
           trained.tokens[static_cast<size_t>(merge.right)] + "\n";
  return out;
}

/// The settings of one ByteLevel stage.
Json byte_level(bool add_prefix_space, bool trim_offsets) {
  return Json::Object{{"type", "ByteLevel"},
                      {"add_prefix_space", add_prefix_space},
                      {"trim_offsets", trim_offsets},
                      {"use_regex", true}};
}

Json added_token(const std::string& text) {
  return Json::Object{{"content", text}, {"single_word", false}, {"lstrip", false},
                      {"rstrip", false}, {"normalized", false},  {"special", true}};
}

Json bpe_model(const TrainedBpe& trained) {
  Json vocab = Json::object();
  for (size_t id = 0; id < trained.tokens.size(); ++id)
    vocab.as_object().emplace_back(trained.tokens[id], static_cast<int64_t>(id));
  Json merges = Json::array();
  for (const auto& merge : trained.merges) {
    Json::Array pair;
    pair.reserve(2);
    pair.emplace_back(trained.tokens[static_cast<size_t>(merge.left)]);
    pair.emplace_back(trained.tokens[static_cast<size_t>(merge.right)]);
    merges.push_back(std::move(pair));
  }
  Json model = Json::Object{{"type", "BPE"},
                            {"dropout", nullptr},
                            {"unk_token", nullptr},
                            {"continuing_subword_prefix", nullptr},
                            {"end_of_word_suffix", nullptr},
                            {"fuse_unk", false},
                            {"byte_fallback", false},
                            {"ignore_merges", false}};
  // Moved in: a braced list would copy them.
  model.set("vocab", std::move(vocab));
  model.set("merges", std::move(merges));
  return model;
}

/// The ids of the special tokens, in order. Models may have hundreds of thousands of them.
std::vector<int64_t> special_ids(const TrainedBpe& trained) {
  std::unordered_map<std::string_view, int64_t> ids;
  for (size_t id = 0; id < trained.tokens.size(); ++id)
    ids.emplace(trained.tokens[id], static_cast<int64_t>(id));
  std::vector<int64_t> special;
  for (const std::string& token : trained.special_tokens) special.push_back(ids.at(token));
  return special;
}

std::string tokenizer_json(const TrainedBpe& trained) {
  Json added = Json::array();
  const std::vector<int64_t> ids = special_ids(trained);
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string& token = trained.special_tokens[i];
    Json entry = Json::Object{{"id", ids[i]}};
    const Json settings = added_token(token);
    entry.as_object().insert(entry.as_object().end(), settings.as_object().begin(),
                             settings.as_object().end());
    added.push_back(std::move(entry));
  }
  Json root = Json::Object{{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  root.set("added_tokens", std::move(added));
  root.set("normalizer", nullptr);
  root.set("pre_tokenizer", byte_level(false, true));
  root.set("post_processor", byte_level(true, false));
  root.set("decoder", byte_level(true, true));
  root.set("model", bpe_model(trained));
  return root.dump(2);
}

/// "bos_token", "eos_token" and "unk_token", as in GPT-2's own files.
Json token_roles(const TrainedBpe& trained) {
  if (trained.special_tokens.empty()) return Json::object();
  const std::string& token = trained.special_tokens[0];
  return Json::Object{{"bos_token", token}, {"eos_token", token}, {"unk_token", token}};
}

std::string tokenizer_config(const TrainedBpe& trained) {
  Json config = Json::Object{{"tokenizer_class", "GPT2Tokenizer"},
                             {"add_prefix_space", false},
                             {"clean_up_tokenization_spaces", false}};
  const Json roles = token_roles(trained);
  for (const auto& [role, token] : roles.as_object()) config.set(role, token);
  Json decoder = Json::object();
  const std::vector<int64_t> ids = special_ids(trained);
  // Without set(), which would search all earlier names.
  for (size_t i = 0; i < ids.size(); ++i)
    decoder.as_object().emplace_back(std::to_string(ids[i]), added_token(trained.special_tokens[i]));
  config.set("added_tokens_decoder", std::move(decoder));
  return config.dump(2) + "\n";
}

}  // namespace

std::map<std::string, std::string> tokenizer_texts(const TrainedBpe& trained) {
  return {{"vocab.json", vocab_json(trained)},
          {"merges.txt", merges_txt(trained)},
          {"tokenizer.json", tokenizer_json(trained)},
          {"tokenizer_config.json", tokenizer_config(trained)},
          {"special_tokens_map.json", token_roles(trained).dump(2) + "\n"}};
}

void write_tokenizer(const std::string& folder, const TrainedBpe& trained) {
  refuse_other_files(folder);
  AtomicDirectory out(folder);
  for (const auto& [name, contents] : tokenizer_texts(trained))
    write_file((out.path() / name).string(), contents);
  out.commit();
}

}  // namespace megalith
