#include "libcore/data/indexed/sidecar.h"

#include <filesystem>
#include <fstream>
#include <system_error>
#include <tuple>
#include <utility>

#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json_fields.h"
#include "libcore/json/json_names.h"
#include "libcore/json/sealed_json.h"

namespace megalith {
namespace {

constexpr std::string_view kFormat = "megalith-dataset";
// Every sidecar begins with this text. A corpus of many GiB is thus told apart without reading it all.
constexpr std::string_view kBeginning = "{\n  \"format\": \"megalith-dataset\"";

/// Throws kData if the checksum is wrong. A missing one is accepted: sidecars of an earlier version have
/// none.
void check_sum(const std::string& path, std::string_view text) {
  if (seal_of(text) == Seal::kBroken)
    fail(ErrorKind::kData, path,
         ": its checksum does not match its text: it was changed after it was written; remove the file to "
         "continue without it");
}

/// Throws kData for a count that is negative, and for an id that the vocabulary does not have.
void check_counts(const Sidecar& sidecar, const std::string& path) {
  const auto refuse = [&](const char* name, int64_t found, const auto& wanted) {
    fail(ErrorKind::kData, path, ": ", name, " is ", found, ", wanted ", wanted,
         "; remove the file to continue without it");
  };
  for (const auto& [name, count] : {std::pair("vocab_size", sidecar.vocab_size),
                                    {"documents", sidecar.documents},
                                    {"sequences", sidecar.sequences},
                                    {"tokens", sidecar.tokens}})
    if (count < 0) refuse(name, count, "a count");
  if (sidecar.max_token_id >= sidecar.vocab_size && sidecar.vocab_size > 0)
    refuse("max_token_id", sidecar.max_token_id, concat("less than vocab_size, ", sidecar.vocab_size));
}

}  // namespace

bool ShardRecord::operator==(const ShardRecord& other) const {
  const auto members = [](const ShardRecord& r) {
    return std::tie(r.index, r.count, r.plan, r.content, r.options, r.begin, r.end, r.datasets, r.rejects,
                    r.seen);
  };
  return members(*this) == members(other);
}

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
    fail(ErrorKind::kNoInput, path,
         ": is not a regular file; wanted the dataset's sidecar; move it away to continue without it");
  if (!is_sidecar(path)) return std::nullopt;
  const std::string text = read_own_file(path);
  check_sum(path, text);
  const Json json = Json::parse(text, path);
  const JsonNames names(json, path);
  if (const int64_t version = json["version"].as_int(); version != 1)
    fail(ErrorKind::kData, path, ": version ", version,
         ", only version 1 is known; remove the file to continue without it");
  auto sidecar = read_fields<Sidecar>(json);
  check_counts(sidecar, path);
  (void)json["options"].as_object();  // kData if it is none
  return sidecar;
}

std::string sidecar_text(const Sidecar& sidecar) {
  Json json = Json::object();
  json.set("format", std::string(kFormat));
  json.set("version", 1);
  add_fields(json, sidecar);
  return sealed(json);
}

std::unique_ptr<AtomicFile> make_sidecar(const std::string& prefix, const Sidecar& sidecar) {
  const std::string path = sidecar_path(prefix);
  if (file_exists(path) && !is_sidecar(path)) {
    warn(path, ": is not the sidecar of a dataset and is left unchanged; the max token id of ", quote(prefix),
         " is therefore not noted");
    return nullptr;
  }
  auto file = std::make_unique<AtomicFile>(path);
  file->write(sidecar_text(sidecar));
  return file;
}

void remove_sidecar(const std::string& prefix) {
  const std::string path = sidecar_path(prefix);
  if (is_sidecar(path) && ::unlink(path.c_str()) != 0)
    fail(ErrorKind::kIo, path, ": cannot remove the old sidecar");
}

}  // namespace megalith
