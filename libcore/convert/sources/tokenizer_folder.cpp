#include "libcore/convert/sources/tokenizer_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/config/tokenizer_model.h"
#include "libcore/io/file.h"
#include "libcore/json/json.h"
#include "libcore/json/json_names.h"
#include "libcore/text/formats/tokenizer_writer.h"

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
constexpr const char* kEndOfText = "<|endoftext|>";

bool has(const std::string& folder, const char* name) {
  return file_exists(folder + "/" + name);
}

bool is_byte_level(const Json& tokenizer) {
  const Json* stage = tokenizer.find("pre_tokenizer");
  const Json* type = stage ? stage->find("type") : nullptr;
  return type && type->is_string() && type->as_string() == "ByteLevel";
}

// Ids of the tokens, from tokenizer.json (its vocabulary and its added tokens) or vocab.json.
using Ids = std::map<std::string, int64_t>;

void add_members(Ids& ids, const Json& vocabulary) {
  if (!vocabulary.is_object()) return;  // a Unigram model lists pairs; its special tokens are added tokens
  for (const auto& [token, id] : vocabulary.as_object()) ids[token] = id.as_int();
}

Ids ids_of(const std::map<std::string, std::string>& files) {
  Ids ids;
  if (const auto file = files.find("tokenizer.json"); file != files.end()) {
    const Json json = Json::parse(file->second, file->first);
    add_members(ids, json["model"]["vocab"]);
    if (const Json* added = json.find("added_tokens"); added && added->is_array())
      for (const Json& token : added->as_array()) ids[token["content"].as_string()] = token["id"].as_int();
  } else if (const auto vocab = files.find("vocab.json"); vocab != files.end()) {
    add_members(ids, Json::parse(vocab->second, vocab->first));
  }
  return ids;
}

// Tokens by id; kData unless the ids are 0, 1, 2, …
std::vector<std::string> tokens_of(const Ids& ids, const std::string& where) {
  std::vector<std::string> tokens(ids.size());
  for (const auto& [token, id] : ids) {
    if (id < 0 || id >= static_cast<int64_t>(tokens.size()) || !tokens[static_cast<size_t>(id)].empty())
      fail(ErrorKind::kData, where, ": token ", quote(token), " has id ", id, "; wanted each id from 0 to ",
           tokens.size() - 1, " once");
    tokens[static_cast<size_t>(id)] = token;
  }
  return tokens;
}

int32_t id_of(const Ids& ids, const std::string& token, const std::string& where) {
  const auto it = ids.find(token);
  if (it == ids.end())
    fail(ErrorKind::kData, where, ": merges ", quote(token), ", which is not in the vocabulary");
  return static_cast<int32_t>(it->second);
}

void add_merge(TrainedBpe& bpe, const Ids& ids, const std::string& left, const std::string& right,
               const std::string& where) {
  bpe.merges.push_back({.left = id_of(ids, left, where),
                        .right = id_of(ids, right, where),
                        .merged = id_of(ids, left + right, where)});
}

void add_line(TrainedBpe& bpe, const Ids& ids, std::string_view line, const std::string& where) {
  const size_t blank = line.find(' ');
  if (blank == std::string_view::npos)
    fail(ErrorKind::kData, where, ": the line ", quote(line), " is no pair of tokens");
  add_merge(bpe, ids, std::string(line.substr(0, blank)), std::string(line.substr(blank + 1)), where);
}

TrainedBpe from_gpt2_files(const std::map<std::string, std::string>& files, const std::string& eod) {
  const Ids ids = ids_of(files);
  TrainedBpe bpe{.special_tokens = {}, .tokens = tokens_of(ids, "vocab.json"), .merges = {}};
  const std::string end = eod.empty() ? kEndOfText : eod;
  if (ids.contains(end)) bpe.special_tokens.push_back(end);
  for (const std::string& line : split(files.at("merges.txt"), '\n'))
    if (!line.empty() && !line.starts_with("#version")) add_line(bpe, ids, line, "merges.txt");
  return bpe;
}

TrainedBpe from_tokenizer_json(const std::map<std::string, std::string>& files) {
  const Ids ids = ids_of(files);
  TrainedBpe bpe{.special_tokens = {}, .tokens = tokens_of(ids, "tokenizer.json"), .merges = {}};
  const Json json = Json::parse(files.at("tokenizer.json"), "tokenizer.json");
  if (const Json* added = json.find("added_tokens"); added && added->is_array())
    for (const Json& token : added->as_array()) bpe.special_tokens.push_back(token["content"].as_string());
  for (const Json& merge : json["model"]["merges"].as_array()) {
    if (merge.is_string())  // as tokenizers wrote it before 0.20
      add_line(bpe, ids, merge.as_string(), "tokenizer.json");
    else if (merge.as_array().size() == 2)
      add_merge(bpe, ids, merge.as_array()[0].as_string(), merge.as_array()[1].as_string(), "tokenizer.json");
    else
      fail(ErrorKind::kData, "tokenizer.json: a merge is no pair of tokens");
  }
  return bpe;
}

std::set<std::string> added_tokens_of(const Json& tokenizer) {
  std::set<std::string> tokens;
  if (const Json* added = tokenizer.find("added_tokens"); added && added->is_array())
    for (const Json& one : added->as_array()) tokens.insert(one["content"].as_string());
  return tokens;
}

// How merges.txt differs from the model of a tokenizer.json; empty: it does not.
std::string merges_differ(const std::string& text, const Json& model) {
  const Json* const list = model.find("merges");
  if (!list || !list->is_array()) return "there are merges";
  size_t count = 0;
  for (const std::string& line : split(text, '\n')) {
    const std::string_view merge =
        line.ends_with('\r') ? std::string_view(line).substr(0, line.size() - 1) : line;
    if (merge.empty() || merge.starts_with("#version")) continue;
    if (count == list->as_array().size()) return concat("has more than ", count, " merges");
    const Json& other = list->as_array()[count++];
    const bool same = other.is_array() && other.as_array().size() == 2
                          ? merge == other.as_array()[0].as_string() + " " + other.as_array()[1].as_string()
                          : other.is_string() && merge == other.as_string();
    if (!same) return concat("merge ", count, " is ", quote(merge));
  }
  return count == list->as_array().size() ? "" : concat("has ", count, " merges");
}

// All five files of a byte-level BPE, as this library writes them.
std::map<std::string, std::string> written_files(const TrainedBpe& bpe, const ModelConfig& config) {
  auto files = tokenizer_texts(bpe);
  Json settings = Json::parse(files.at("tokenizer_config.json"), "tokenizer_config.json");
  settings.set("model_max_length", config.max_positions);
  files["tokenizer_config.json"] = settings.dump(2) + "\n";
  return files;
}

// A role of tokenizer_config.json: the text itself, or an object that holds it.
std::string role(const Json& settings, const char* name) {
  const Json* value = settings.find(name);
  if (value && value->is_object()) value = value->find("content");
  return value && value->is_string() ? value->as_string() : std::string();
}

std::optional<int64_t> find_id(const Ids& ids, const std::string& token) {
  const auto it = ids.find(token);
  return it == ids.end() ? std::nullopt : std::optional(it->second);
}

SpecialIds special_ids(const std::map<std::string, std::string>& files, const Ids& ids) {
  SpecialIds special;
  if (const auto file = files.find("tokenizer_config.json"); file != files.end()) {
    const Json settings = Json::parse(file->second, file->first);
    special = {find_id(ids, role(settings, "bos_token")), find_id(ids, role(settings, "eos_token"))};
  }
  const auto end = find_id(ids, kEndOfText);
  if (!special.eos) special.eos = end;
  if (!special.bos) special.bos = end;
  return special;
}

// Names the token that ends a document where transformers looks for it.
void name_end(std::map<std::string, std::string>& files, const std::string& eod) {
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const auto file = files.find(name);
    Json roles = file == files.end() ? Json::object() : Json::parse(file->second, name);
    roles.set("eos_token", eod);
    files[name] = roles.dump(2) + "\n";
  }
}

// Renames a list of "extra_special_tokens", as transformers 5 writes it, because transformers 4 fails at it;
// both understand its older name.
void name_special_tokens_for_both(std::map<std::string, std::string>& files) {
  const auto file = files.find("tokenizer_config.json");
  if (file == files.end()) return;
  Json settings = Json::parse(file->second, file->first);
  const Json* extra = settings.find("extra_special_tokens");
  if (!extra || !extra->is_array()) return;
  Json out = Json::object();
  for (auto& [name, value] : settings.as_object())
    if (name != "additional_special_tokens")
      out.set(name == "extra_special_tokens" ? "additional_special_tokens" : name, value);
  file->second = out.dump(2) + "\n";
}

// These files are copied to where the model goes, perhaps to be published: one may not be a link to a file of
// somewhere else. (In Hugging Face's cache they are links to ../../blobs.)
void check_link(const std::string& folder, const std::string& path) {
  if (!fs::is_symlink(path)) return;
  const fs::path home = fs::canonical(folder), target = fs::canonical(path);
  const fs::path blobs = home.parent_path().parent_path() / "blobs";
  if (target.parent_path() != home && target.parent_path() != blobs)
    fail(ErrorKind::kData, path, ": is a link to ", target.string(),
         ", outside of the model; put a copy of that file there");
}

// vocab.json and merges.txt beside a tokenizer.json say the same as it does, because some programs read the
// ones, some the other. Tokens may be missing from vocab.json that were added later.
void check_agreement(const std::map<std::string, std::string>& files,
                     const std::map<std::string, Json>& parsed, const std::string& folder) {
  const auto main = files.find("tokenizer.json");
  if (main == files.end() || !(files.contains("vocab.json") || files.contains("merges.txt"))) return;
  const Json& json = parsed.at("tokenizer.json");
  const JsonNames names(json, folder + "/tokenizer.json");
  const auto differ = [&](const char* name, const std::string& how) {
    fail(ErrorKind::kData, folder, "/", name, ": ", how,
         ", other than tokenizer.json; remove it, or give the files of one tokenizer");
  };
  if (const auto vocab = parsed.find("vocab.json"); vocab != parsed.end()) {
    const Json& listed = vocab->second;
    const JsonNames vocab_names(listed, folder + "/vocab.json");
    const Ids all = ids_of({*main});
    Ids theirs, model;
    add_members(theirs, listed);
    add_members(model, json["model"]["vocab"]);
    for (const auto& [token, id] : theirs)
      if (const auto it = all.find(token); it == all.end() || it->second != id)
        differ("vocab.json", concat("token ", quote(token), " has id ", id));
    const std::set<std::string> added = added_tokens_of(json);
    for (const auto& [token, id] : model)
      if (!theirs.contains(token) && !added.contains(token))
        differ("vocab.json", concat("has no token ", quote(token)));
  }
  if (const auto merges = files.find("merges.txt"); merges != files.end())
    if (const std::string how = merges_differ(merges->second, json["model"]); !how.empty())
      differ("merges.txt", how);
}

}  // namespace

TokenizerFiles tokenizer_in(const std::string& folder, const std::string& type) {
  TokenizerFiles files;
  if (const auto found = find_tokenizer(folder, type))
    files = {.type = found->type, .vocab = found->vocab, .merges = found->merges, .model = found->model};
  return files;
}

bool is_tokenizer_file(std::string_view name) {
  return std::find(kTokenizerFiles.begin(), kTokenizerFiles.end(), name) != kTokenizerFiles.end();
}

std::map<std::string, std::string> tokenizer_files_of(const std::string& folder) {
  std::map<std::string, std::string> files;
  std::map<std::string, Json> parsed;
  for (const char* name : kTokenizerFiles) {
    if (!has(folder, name)) continue;
    const std::string path = folder + "/" + name;
    check_link(folder, path);
    files[name] = read_own_file(path);
    if (!path.ends_with(".json")) continue;
    if (!parsed.emplace(name, Json::parse(files[name], path)).first->second.is_object())
      fail(ErrorKind::kData, path, ": is no JSON object; it is no tokenizer's file");
  }
  check_agreement(files, parsed, folder);
  return files;
}

std::string eod_of(const Json& args) {
  const Json* const end = args.find("eod_token");
  return end && end->is_string() ? end->as_string() : std::string();
}

HfTokenizerFiles hf_tokenizer_files(const std::string& folder, const ModelConfig& config,
                                    const std::string& eod) {
  HfTokenizerFiles out{.files = tokenizer_files_of(folder), .ids = {}};
  if (out.files.empty()) return out;
  if (out.files.contains("vocab.json") && out.files.contains("merges.txt") &&
      !out.files.contains("tokenizer.json"))
    out.files.merge(written_files(from_gpt2_files(out.files, eod), config));
  else if (out.files.contains("tokenizer.json") &&
           is_byte_level(Json::parse(out.files.at("tokenizer.json"), "tokenizer.json")))
    out.files.merge(written_files(from_tokenizer_json(out.files), config));
  name_special_tokens_for_both(out.files);
  const Ids ids = ids_of(out.files);
  if (!eod.empty()) {
    if (!ids.contains(eod))
      fail(ErrorKind::kData, folder, ": has no token ", quote(eod),
           ", which ended the documents that the model was trained with; give its tokenizer");
    name_end(out.files, eod);
  }
  for (const auto& [token, id] : ids)
    if (id >= config.vocab_size)
      fail(ErrorKind::kData, folder, ": token ", quote(token), " has id ", id,
           ", but the model's vocabulary ends at ", config.vocab_size - 1,
           "; give the tokenizer that it was trained with");
  out.ids = special_ids(out.files, ids);
  return out;
}

}  // namespace megalith
