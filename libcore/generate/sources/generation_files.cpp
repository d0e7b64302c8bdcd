#include "libcore/generate/sources/generation_files.h"

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/convert/sources/generation_config.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "libcore/json/small_json.h"

namespace megalith {
namespace {

Json load_if_there(const std::string& path) {
  return file_exists(path) ? load_own_small(path) : Json();
}

std::vector<int32_t> ids_in(const Json* value, const ModelSource& source, const std::string& where) {
  std::vector<int32_t> ids;
  const auto take = [&](const Json& id) {
    if (!id.is_int() || id.as_int() < 0 || id.as_int() >= source.config().vocab_size)
      fail(ErrorKind::kData, where, ": \"eos_token_id\" is ", value->dump(), "; wanted ids below ",
           source.config().vocab_size, ", the model's vocabulary");
    ids.push_back(static_cast<int32_t>(id.as_int()));
  };
  if (value == nullptr || value->is_null()) return ids;
  if (value->is_array())
    for (const Json& id : value->as_array()) take(id);
  else
    take(*value);
  return ids;
}

std::vector<int32_t> end_ids(const ModelSource& source, const Tokenizer& tokenizer) {
  std::string where;
  const Json config = generation_config(source, &where);
  std::vector<int32_t> ids = ids_in(config.find("eos_token_id"), source, where);
  if (ids.empty()) ids.push_back(tokenizer.eod());
  return ids;
}

/// The text of a special token in tokenizer_config.json: a string, or {"content": string}.
std::string token_text(const Json& config, const char* role) {
  const Json* token = config.find(role);
  if (token != nullptr && token->is_object()) token = token->find("content");
  return token != nullptr && token->is_string() ? token->as_string() : std::string();
}

/// The chat template: a text, or a list of named texts, of which "default" is the one for chats.
std::string template_text(const Json* value) {
  if (value == nullptr) return {};
  if (value->is_string()) return value->as_string();
  if (value->is_array())
    for (const Json& named : value->as_array()) {
      const Json *name = named.find("name"), *text = named.find("template");
      if (name && text && *name == Json("default") && text->is_string()) return text->as_string();
    }
  return {};
}

}  // namespace

GenerationFiles tokenizer_settings(const TokenizerFolder& folder) {
  GenerationFiles out;
  const Json config = load_if_there(folder.file("tokenizer_config.json"));
  out.bos_token = token_text(config, "bos_token");
  out.eos_token = token_text(config, "eos_token");
  out.template_file = folder.file("tokenizer_config.json");
  out.chat_template = template_text(config.find("chat_template"));
  if (const std::string file = folder.file("chat_template.jinja"); file_exists(file)) {
    out.chat_template = read_own_file(file);
    out.template_file = file;
  }
  return out;
}

GenerationFiles generation_files(const ModelSource& source, const Tokenizer& tokenizer) {
  const TokenizerFolder& folder = source.tokenizer_folder();
  GenerationFiles out = folder.empty() ? GenerationFiles() : tokenizer_settings(folder);
  out.end = end_ids(source, tokenizer);
  return out;
}

}  // namespace megalith
