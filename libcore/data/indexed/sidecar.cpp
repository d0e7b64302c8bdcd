#include "libcore/data/indexed/sidecar.h"

#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json_names.h"
#include "libcore/json/sealed_json.h"

namespace megalith {
namespace {

constexpr std::string_view kFormat = "megalith-dataset";
// Every sidecar begins with this text, so that a corpus of many GiB is told apart without reading it.
constexpr std::string_view kBeginning = "{\n  \"format\": \"megalith-dataset\"";

/// One of an earlier version has none.
void check_sum(const std::string& path, std::string_view text) {
  if (seal_of(text) == Seal::kBroken)
    fail(ErrorKind::kData, path,
         ": its checksum is not that of its text: it was changed after it was written; remove the file to go "
         "on without it");
}

}  // namespace

bool is_sidecar(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string head(kBeginning.size(), '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  return file && head == kBeginning;
}

std::string sidecar_path(const std::string& prefix) {
  return prefix + ".json";
}

std::optional<Sidecar> read_sidecar(const std::string& prefix) {
  const std::string path = sidecar_path(prefix);
  std::error_code error;
  if (file_exists(path) && !std::filesystem::is_regular_file(path, error))
    fail(
        ErrorKind::kNoInput, path,
        ": is not a regular file; wanted what was kept beside the dataset; move it away to go on without it");
  if (!is_sidecar(path)) return std::nullopt;
  const std::string text = read_own_file(path);
  check_sum(path, text);
  const Json json = Json::parse(text, path);
  const JsonNames names(json, path);
  if (const int64_t version = json["version"].as_int(); version != 1)
    fail(ErrorKind::kData, path, ": version ", version,
         ", only version 1 is known; remove the file to go on without it");
  Sidecar s;
  s.tokenizer = json["tokenizer"].as_string();
  s.tokenizer_hash = json["tokenizer_hash"].as_string();
  s.vocab_size = json["vocab_size"].as_int();
  s.documents = json["documents"].as_int();
  s.sequences = json["sequences"].as_int();
  s.tokens = json["tokens"].as_int();
  s.max_token_id = json["max_token_id"].as_int();
  s.idx_hash = json["idx_xxh64"].as_string();
  for (const Json& part : json["bin_parts"].as_array()) {
    const int64_t bytes = part["bytes"].as_int();
    if (bytes < 0)
      fail(ErrorKind::kData, path, ": a part of ", bytes, " bytes; remove the file to go on without it");
    s.bin_parts.push_back({static_cast<uint64_t>(bytes), part["xxh64"].as_string()});
  }
  s.options = json["options"];
  return s;
}

std::unique_ptr<AtomicFile> make_sidecar(const std::string& prefix, const Sidecar& s) {
  const std::string path = sidecar_path(prefix);
  if (file_exists(path) && !is_sidecar(path)) {
    warn(path, ": is not a sidecar of a dataset, left as it is; the max token id of ", quote(prefix),
         " is therefore not noted");
    return nullptr;
  }
  Json json = Json::object();
  json.set("format", std::string(kFormat));
  json.set("version", 1);
  json.set("tokenizer", s.tokenizer);
  json.set("tokenizer_hash", s.tokenizer_hash);
  json.set("vocab_size", s.vocab_size);
  json.set("documents", s.documents);
  json.set("sequences", s.sequences);
  json.set("tokens", s.tokens);
  json.set("max_token_id", s.max_token_id);
  json.set("idx_xxh64", s.idx_hash);
  Json parts = Json::array();
  for (const ContentPart& part : s.bin_parts) {
    Json entry = Json::object();
    entry.set("bytes", static_cast<int64_t>(part.bytes));
    entry.set("xxh64", part.xxh64);
    parts.push_back(std::move(entry));
  }
  json.set("bin_parts", std::move(parts));
  json.set("options", s.options);
  auto file = std::make_unique<AtomicFile>(path);
  file->write(sealed(json));
  return file;
}

void remove_sidecar(const std::string& prefix) {
  const std::string path = sidecar_path(prefix);
  if (is_sidecar(path) && ::unlink(path.c_str()) != 0)
    fail(ErrorKind::kIo, path, ": cannot remove the old sidecar");
}

}  // namespace megalith
