#include "libcore/convert/sources/tokenizer_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "libcore/json/json_names.h"
#include "libcore/text/formats/gpt2_files.h"
#include "libcore/text/formats/make_tokenizer.h"
#include "libcore/text/formats/tokenizer_writer.h"
#include "libcore/text/saved_tokenizer.h"
#include "libcore/text/tokenizer_files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEndOfText = "<|endoftext|>";

// The files of a tokenizer's folder: their contents by name, and the JSON files parsed. name() gives a file's
// path for messages.
struct Folder {
  TokenizerFolder from;
  std::map<std::string, std::string> files;
  std::map<std::string, Json> parsed;

  bool has(const char* name) const { return files.contains(name); }
  std::string name(const char* file) const { return from.file(file); }
  bool is_gpt2() const {
    const auto found = find_tokenizer(from);
    return found && found->type == "GPT2BPETokenizer";
  }
};

bool is_byte_level(const Json& tokenizer) {
  const Json* stage = tokenizer.find("pre_tokenizer");
  const Json* type = stage ? stage->find("type") : nullptr;
  return type && type->is_string() && type->as_string() == "ByteLevel";
}

// The tokens' ids, from tokenizer.json (its vocabulary and added tokens) or vocab.json.
using Ids = std::map<std::string, int64_t>;

void add_members(Ids& ids, const Json& vocabulary) {
  // Unigram has a list of pairs [token, score]; its special tokens are among the added tokens
  if (vocabulary.is_array()) return;
  for (const auto& [token, id] : vocabulary.as_object()) ids[token] = id.as_int();
}

const Json::Array& added_tokens(const Json& tokenizer) {
  static const Json::Array kNone;
  const Json* const added = tokenizer.find("added_tokens");
  return added ? added->as_array() : kNone;
}

// The name of the file that defines the ids; empty if there is none.
std::string file_of_ids(const Folder& folder) {
  for (const char* const name : {"tokenizer.json", "vocab.json"})
    if (folder.has(name)) return name;
  return {};
}

Ids ids_of(const Folder& folder) {
  Ids ids;
  const std::string file = file_of_ids(folder);
  if (file.empty()) return ids;
  const Json& json = folder.parsed.at(file);
  const JsonNames names(json, folder.name(file.c_str()));
  if (file == "vocab.json") {
    add_members(ids, json);
    return ids;
  }
  add_members(ids, json["model"]["vocab"]);
  for (const Json& token : added_tokens(json)) ids[token["content"].as_string()] = token["id"].as_int();
  return ids;
}

// Throws kData unless each id is in the model's vocabulary and belongs to a single token. Ids without a token
// are allowed.
void check_ids(const Ids& ids, int64_t vocab_size, const std::string& where) {
  std::map<int64_t, const std::string*> tokens;
  for (const auto& [token, id] : ids) {
    if (id < 0) fail(ErrorKind::kData, where, ": token ", quote(token), " has id ", id, ", wanted 0 or more");
    if (id >= vocab_size)
      fail(ErrorKind::kData, where, ": token ", quote(token), " has id ", id,
           ", but the model's vocabulary ends at ", vocab_size - 1,
           "; give the tokenizer that it was trained with");
    if (const auto [at, fresh] = tokens.emplace(id, &token); !fresh)
      fail(ErrorKind::kData, where, ": tokens ", quote(*at->second), " and ", quote(token),
           " have the same id, ", id);
  }
}

// The tokens in the order of their ids. Throws kData unless the ids are 0, 1, 2, …
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

BytePairEncoder::Merge merge_of(const Ids& ids, const std::string& left, const std::string& right,
                                const std::string& where) {
  return {.left = id_of(ids, left, where),
          .right = id_of(ids, right, where),
          .merged = id_of(ids, left + right, where)};
}

BytePairEncoder::Merge merge_of(const Ids& ids, std::string_view line, const std::string& where) {
  const size_t blank = line.find(' ');
  if (blank == std::string_view::npos)
    fail(ErrorKind::kData, where, ": the line ", quote(line), " is not a pair of tokens");
  return merge_of(ids, std::string(line.substr(0, blank)), std::string(line.substr(blank + 1)), where);
}

std::vector<BytePairEncoder::Merge> merges_of(const Json& tokenizer, const Ids& ids,
                                              const std::string& where) {
  std::vector<BytePairEncoder::Merge> merges;
  for (const Json& merge : tokenizer["model"]["merges"].as_array()) {
    if (merge.is_string())  // the form that tokenizers before 0.20 wrote
      merges.push_back(merge_of(ids, merge.as_string(), where));
    else if (const Json::Array& pair = merge.as_array(); pair.size() == 2)
      merges.push_back(merge_of(ids, pair[0].as_string(), pair[1].as_string(), where));
    else
      fail(ErrorKind::kData, where, ": model.merges[", merges.size(), "] is not a pair of tokens");
  }
  return merges;
}

TrainedBpe from_gpt2_files(const Folder& folder, const Ids& ids, const std::string& eod) {
  TrainedBpe bpe{.special_tokens = {}, .tokens = tokens_of(ids, folder.name("vocab.json")), .merges = {}};
  const std::string end = eod.empty() ? kEndOfText : eod;
  if (ids.contains(end)) bpe.special_tokens.push_back(end);
  const std::string where = folder.name("merges.txt");
  for (const std::string& line : split(folder.files.at("merges.txt"), '\n'))
    if (!line.empty() && !line.starts_with("#version")) bpe.merges.push_back(merge_of(ids, line, where));
  return bpe;
}

TrainedBpe from_tokenizer_json(const Folder& folder, const Ids& ids) {
  const std::string where = folder.name("tokenizer.json");
  const Json& json = folder.parsed.at("tokenizer.json");
  TrainedBpe bpe{
      .special_tokens = {}, .tokens = tokens_of(ids, where), .merges = merges_of(json, ids, where)};
  for (const Json& token : added_tokens(json)) bpe.special_tokens.push_back(token["content"].as_string());
  return bpe;
}

// Says how merges.txt differs from the model in a tokenizer.json; empty if it does not differ.
std::string merges_differ(const std::string& text, const Json& model) {
  const Json* const list = model.find("merges");
  if (!list || !list->is_array()) return "has merges";
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

// All five files of a byte-level BPE, with the contents that this library writes.
std::map<std::string, std::string> written_files(const TrainedBpe& bpe, const ModelConfig& config) {
  auto files = tokenizer_texts(bpe);
  Json settings = Json::parse(files.at("tokenizer_config.json"), "tokenizer_config.json");
  settings.set("model_max_length", config.max_positions);
  files["tokenizer_config.json"] = settings.dump(2) + "\n";
  return files;
}

// The token that tokenizer_config.json gives for a role such as "eos_token". It may be a text or an object
// that holds the text.
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

// Makes tokenizer_config.json readable for both versions of transformers. Version 5 writes
// "extra_special_tokens" as a list, on which version 4 fails. The list gets its older name, which both
// versions understand.
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

// Writes the token that ends a document into the files in which transformers looks for it.
void name_end(std::map<std::string, std::string>& files, const std::string& eod) {
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const auto file = files.find(name);
    Json roles = file == files.end() ? Json::object() : Json::parse(file->second, name);
    roles.set("eos_token", eod);
    files[name] = roles.dump(2) + "\n";
  }
}

// Throws kData if a tokenizer's file is a link to a file elsewhere: the files are copied to the output, which
// may be published. Links to ../../blobs are allowed, since Hugging Face's cache has them.
void check_link(const std::string& folder, const std::string& path) {
  if (!fs::is_symlink(path)) return;
  const fs::path home = fs::canonical(folder), target = fs::canonical(path);
  const fs::path blobs = home.parent_path().parent_path() / "blobs";
  if (target.parent_path() != home && target.parent_path() != blobs)
    fail(ErrorKind::kData, path, ": is a link to ", target.string(),
         ", outside of the model; put a copy of that file there");
}

// Throws kData if vocab.json or merges.txt contradicts a tokenizer.json in the same folder: some programs
// read the first two, others tokenizer.json. Tokens that were added later may be missing from vocab.json.
void check_agreement(const Folder& folder, const Ids& all) {
  if (!folder.has("tokenizer.json")) return;
  const Json& json = folder.parsed.at("tokenizer.json");
  const JsonNames names(json, folder.name("tokenizer.json"));
  const auto differ = [&](const char* name, const std::string& how) {
    fail(ErrorKind::kData, folder.name(name), ": ", how,
         ", other than tokenizer.json; remove it, or give the files of one tokenizer");
  };
  if (const auto vocab = folder.parsed.find("vocab.json"); vocab != folder.parsed.end()) {
    const Json& listed = vocab->second;
    const JsonNames vocab_names(listed, folder.name("vocab.json"));
    Ids theirs, model;
    add_members(theirs, listed);
    add_members(model, json["model"]["vocab"]);
    for (const auto& [token, id] : theirs)
      if (const auto it = all.find(token); it == all.end() || it->second != id)
        differ("vocab.json", concat("token ", quote(token), " has id ", id));
    std::set<std::string> added;
    for (const Json& token : added_tokens(json)) added.insert(token["content"].as_string());
    for (const auto& [token, id] : model)
      if (!theirs.contains(token) && !added.contains(token))
        differ("vocab.json", concat("has no token ", quote(token)));
  }
  if (const auto merges = folder.files.find("merges.txt"); merges != folder.files.end())
    if (const std::string how = merges_differ(merges->second, json["model"]); !how.empty())
      differ("merges.txt", how);
}

// Whether this model of a tokenizer.json has plain merges, whose result is their two sides joined. Throws
// kData for a type of model that Hugging Face does not have.
bool has_plain_merges(const Json& model) {
  constexpr std::array kTypes = {"BPE", "Unigram", "WordLevel", "WordPiece"};
  const Json* const type = model.find("type");  // tokenizers before 0.5 did not write it
  if (type && std::find(kTypes.begin(), kTypes.end(), type->as_string()) == kTypes.end())
    fail(ErrorKind::kData, JsonNames::of(*type), " is ", quote(shortened(type->as_string(), 60)),
         ", wanted BPE, Unigram, WordLevel or WordPiece");
  if (type ? type->as_string() != "BPE" : !model.find("merges")) return false;
  const Json* const prefix = model.find("continuing_subword_prefix");
  return !prefix || prefix->is_null() || *prefix == Json("");
}

// Reads the files before a target copies them. Otherwise a damaged tokenizer would get into the output, and
// only the output's reader would notice. This library can read GPT-2's files and a tokenizer.model
// completely. A tokenizer.json is copied even if this library does not support its model, so only its ids and
// merges are checked.
void check_contents(const Folder& folder, const Ids& ids, int64_t vocab_size) {
  if (!ids.empty()) check_ids(ids, vocab_size, folder.name(file_of_ids(folder).c_str()));
  if (folder.has("tokenizer.json")) {
    const Json& json = folder.parsed.at("tokenizer.json");
    const JsonNames names(json, folder.name("tokenizer.json"));
    if (has_plain_merges(json["model"])) merges_of(json, ids, folder.name("tokenizer.json"));
  }
  // any token may stand in for the end of a document here: the real one may be named later
  if (folder.is_gpt2())
    read_gpt2_files(folder.name("vocab.json"), folder.name("merges.txt"),
                    {.eod = ids.empty() || ids.contains(kEndOfText) ? "" : ids.begin()->first});
  if (!folder.has("tokenizer.model")) return;
  make_tokenizer(*recognize_tokenizer(folder.name("tokenizer.model")));
}

Folder read_folder(const TokenizerFolder& from) {
  Folder folder{.from = from, .files = {}, .parsed = {}};
  check_saved_tokenizer(from.path);
  for (const char* const name : tokenizer_file_names()) {
    const std::string file = folder.name(name);
    if (!from.has(name)) continue;
    // if the user named the file, a link is intended and not checked
    if (from.named.empty()) check_link(from.path, file);
    const std::string& text = folder.files[name] = read_own_file(file);
    if (!std::string_view(name).ends_with(".json")) continue;
    if (!folder.parsed.emplace(name, Json::parse(text, file)).first->second.is_object())
      fail(ErrorKind::kData, file, ": is not a JSON object, so it is not a tokenizer file");
  }
  return folder;
}

// The folder's files after all checks, and their ids.
struct Checked {
  Folder folder;
  Ids ids;
};
Checked checked_folder(const TokenizerFolder& from, int64_t vocab_size) {
  Checked out{.folder = read_folder(from), .ids = {}};
  out.ids = ids_of(out.folder);
  check_agreement(out.folder, out.ids);
  check_contents(out.folder, out.ids, vocab_size);
  return out;
}

}  // namespace

std::map<std::string, std::string> tokenizer_files_of(const TokenizerFolder& folder, int64_t vocab_size) {
  return checked_folder(folder, vocab_size).folder.files;
}

std::string eod_of(const Json& args) {
  const Json* const end = args.find("eod_token");
  return end && end->is_string() ? end->as_string() : std::string();
}

HfTokenizerFiles hf_tokenizer_files(const TokenizerFolder& folder, const ModelConfig& config,
                                    const std::string& eod) {
  auto [given, ids] = checked_folder(folder, config.vocab_size);
  if (given.files.empty()) return {};
  HfTokenizerFiles out{.files = given.files, .ids = {}};
  if (given.is_gpt2())
    out.files.merge(written_files(from_gpt2_files(given, ids, eod), config));
  else if (given.has("tokenizer.json") && is_byte_level(given.parsed.at("tokenizer.json")))
    out.files.merge(written_files(from_tokenizer_json(given, ids), config));
  name_special_tokens_for_both(out.files);
  if (!eod.empty()) {
    if (!ids.contains(eod))
      fail(ErrorKind::kData, folder.path, ": has no token ", quote(eod),
           ", which ended the documents that the model was trained with; give its tokenizer");
    name_end(out.files, eod);
  }
  out.ids = special_ids(out.files, ids);
  return out;
}

}  // namespace megalith
