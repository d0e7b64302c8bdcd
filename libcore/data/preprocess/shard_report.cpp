#include "libcore/data/preprocess/shard_report.h"

#include <array>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/io/streams/decoder.h"
#include "libcore/json/json.h"

namespace megalith {
namespace {

constexpr uint64_t kBytesOfAToken = 4, kDecompressed = 4;

uint64_t tokens_in(const ShardPart& part, const std::string& path) {
  const bool compressed = !compression_of(path).empty();
  return part.bytes * (compressed ? kDecompressed : 1) / kBytesOfAToken;
}

Json place_json(const StreamPlace& place) {
  return Json::Object{{"byte", place.at}, {"skip", place.skip}};
}

Json part_json(const ShardPart& part, const PlannedFile& file) {
  Json json = Json::Object{{"file", file.path}, {"begin", place_json(part.part.begin)}};
  json.set("end", place_json(part.part.end.value_or(StreamPlace{file.size, 0})));
  json.set("bytes", part.bytes);
  return json;
}

/// "[120, 4096)", or with decompressed bytes that are left out "[120 + 17, 4096 + 5)".
std::string shown(const ShardPart& part, const PlannedFile& file) {
  const auto place = [](const StreamPlace& at) {
    return at.skip > 0 ? concat(at.at, " + ", at.skip) : std::to_string(at.at);
  };
  return concat('[', place(part.part.begin), ", ", place(part.part.end.value_or(StreamPlace{file.size, 0})),
                ')');
}

}  // namespace

void print_plan(const ShardPlan& plan, const std::vector<PlannedFile>& files, bool as_json,
                std::ostream& out) {
  for (int64_t index = 0; index < plan.count(); ++index) {
    Json parts = Json::array();
    uint64_t bytes = 0, tokens = 0;
    std::string lines;
    for (const ShardPart& part : plan.parts(index)) {
      const PlannedFile& file = files[part.file];
      bytes += part.bytes;
      tokens += tokens_in(part, file.path);
      parts.push_back(part_json(part, file));
      lines += concat("  ", printable(file.path), ' ', shown(part, file), '\n');
    }
    if (as_json)
      out << Json(
                 Json::Object{{"shard", index}, {"bytes", bytes}, {"tokens_about", tokens}, {"parts", parts}})
                 .dump()
          << '\n';
    else
      out << "shard " << index << ": " << format_bytes(static_cast<double>(bytes)) << ", about "
          << format_count(static_cast<int64_t>(tokens)) << " tokens\n"
          << lines;
  }
}

int print_missing(const ShardSet& set, MissingFormat format, std::ostream& out) {
  for (const auto& [index, failure] : set.failed)
    tell("data: shard ", index, " of ", set.count, " failed (exit code ", failure.code,
         "): ", failure.reason);
  if (format == MissingFormat::kSlurm && !set.missing.empty()) out << ranges_text(set.missing) << '\n';
  if (format == MissingFormat::kLines)
    for (const int64_t index : set.missing) out << index << '\n';
  if (!set.missing.empty()) return exit_code(ErrorKind::kComm);
  return set.failed.empty() ? 0 : exit_code(ErrorKind::kData);
}

}  // namespace megalith
