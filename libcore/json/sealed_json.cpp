#include "libcore/json/sealed_json.h"

#include "libcore/base/error.h"
#include "libcore/hash/xxh64.h"

namespace megalith {
namespace {

constexpr std::string_view kChecksum = ",\n  \"checksum\": \"", kEnd = "\"\n}\n";

}  // namespace

std::string sealed(const Json& object) {
  std::string text = object.dump(2);
  text.resize(text.size() - std::string_view("\n}").size());
  return concat(text, kChecksum, hex64(xxh64(text)), kEnd);
}

Seal seal_of(std::string_view text) {
  const size_t at = text.rfind(kChecksum);
  if (at == std::string_view::npos) return Seal::kNone;
  const bool whole = text.substr(at + kChecksum.size()) == concat(hex64(xxh64(text.substr(0, at))), kEnd);
  return whole ? Seal::kWhole : Seal::kBroken;
}

}  // namespace megalith
