#include "libcore/data/shards/shard_failure.h"

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json_fields.h"
#include "libcore/json/json_names.h"
#include "libcore/json/sealed_json.h"

namespace megalith {
namespace {

constexpr const char* kFormat = "megalith-shard-failure";

}  // namespace

std::string failure_path(const std::string& prefix) {
  return prefix + ".failed.json";
}

void write_failure(const std::string& prefix, const ShardFailure& failure) {
  make_directories(parent_or_here(prefix));
  Json json = Json::Object{{"format", kFormat}, {"version", 1}};
  add_fields(json, failure);
  write_file(failure_path(prefix), sealed(json));
}

std::optional<ShardFailure> read_failure(const std::string& prefix) {
  const std::string path = failure_path(prefix);
  if (!file_exists(path)) return std::nullopt;
  const std::string text = read_own_file(path);
  if (seal_of(text) != Seal::kWhole)
    fail(ErrorKind::kData, path,
         ": its checksum does not match its text: it was changed after it was written; "
         "remove the file");
  const Json json = Json::parse(text, path);
  const JsonNames names(json, path);
  return read_fields<ShardFailure>(json);
}

}  // namespace megalith
