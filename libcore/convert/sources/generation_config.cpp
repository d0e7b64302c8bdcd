#include "libcore/convert/sources/generation_config.h"

#include <string>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "libcore/json/small_json.h"

namespace megalith {
namespace {

/// The object in a JSON file; empty if there is no such file.
Json load_if_there(const std::string& path) {
  if (!file_exists(path)) return Json::object();
  Json json = load_own_small(path);
  if (!json.is_object()) fail(ErrorKind::kData, path, ": is not a JSON object");
  return json;
}

bool says(const Json& config, const char* name) {
  const Json* value = config.find(name);
  return value && !value->is_null();
}

}  // namespace

Json generation_config(const ModelSource& source, std::string* end_from) {
  std::string from = source.path() + "/generation_config.json";
  Json out = load_if_there(from);
  const Json* kept = source.args().find(kGenerationConfig);
  if (out.as_object().empty() && kept && kept->is_object()) {
    out = *kept;
    from = source.path();
  }
  if (!says(out, "eos_token_id")) {
    from = source.path() + "/config.json";
    const Json config = load_if_there(from);
    if (says(config, "eos_token_id")) out.set("eos_token_id", config["eos_token_id"]);
  }
  if (end_from) *end_from = std::move(from);
  return out;
}

}  // namespace megalith
