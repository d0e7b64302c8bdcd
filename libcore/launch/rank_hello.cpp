#include "libcore/launch/rank_hello.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/hash/sha256.h"

namespace megalith {
namespace {

constexpr std::string_view kMagic = "MGLRDZV1";
constexpr size_t kHeader = kMagic.size() + 4;
constexpr uint32_t kMaxBytes = 1U << 20;  // a hundred times what the options of a run need

int count(const Json& json, const char* name) {
  const int64_t value = json[name].as_int();
  if (value < 0 || value > std::numeric_limits<int>::max())
    fail(ErrorKind::kData, "a hello whose ", name, " is ", value);
  return static_cast<int>(value);
}

const Json* member(const Json& options, const std::string& name) {
  static const Json kNone;
  const Json* const found = options.find(name);
  return found ? found : &kNone;
}

std::string option_name(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

}  // namespace

std::string encode_hello(const RankHello& hello) {
  Json json = Json::object();
  json.set("version", hello.version);
  json.set("token", hello.token);
  json.set("rank", hello.rank);
  json.set("world", hello.world);
  json.set("options", hello.options);
  const std::string text = json.dump();
  std::string bytes(kMagic);
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(text.size() >> shift);
  return bytes + text;
}

std::optional<RankHello> decode_hello(std::string_view bytes) {
  if (bytes.substr(0, kMagic.size()) != kMagic.substr(0, bytes.size()))
    fail(ErrorKind::kData, "not a rank of this program: it began with ",
         quote(bytes.substr(0, kMagic.size())));
  if (bytes.size() < kHeader) return std::nullopt;
  uint32_t length = 0;
  for (size_t i = 0; i < 4; ++i)
    length |= uint32_t{static_cast<unsigned char>(bytes[kMagic.size() + i])} << (8 * i);
  if (length > kMaxBytes) fail(ErrorKind::kData, "a hello of ", length, " bytes");
  if (bytes.size() < kHeader + length) return std::nullopt;
  const Json json = Json::parse(bytes.substr(kHeader, length), "hello");
  RankHello hello{.version = json["version"].as_string(),
                  .token = json["token"].as_string(),
                  .rank = count(json, "rank"),
                  .world = count(json, "world"),
                  .options = json["options"]};
  (void)hello.options.as_object();  // or throws kData
  return hello;
}

std::string token_digest(const std::string& token) {
  return token.empty() ? "" : sha256_hex("megalith job token " + token);
}

std::string refusal(const RankHello& mine, const RankHello& theirs) {
  if (theirs.token != mine.token)
    return "it has another job token (MEGALITH_JOB_TOKEN, else the number of torchrun's or Slurm's job)";
  if (theirs.version != mine.version)
    return concat("it has version ", theirs.version, ", rank ", mine.rank, " has ", mine.version);
  if (theirs.world != mine.world)
    return concat("it counts ", theirs.world, " ranks, rank ", mine.rank, " counts ", mine.world);
  if (theirs.rank >= mine.world) return concat("it calls itself rank ", theirs.rank, " of ", mine.world);
  return {};
}

std::string option_differences(const RankHello& mine, const RankHello& theirs) {
  std::string list;
  const auto compare = [&](const std::string& name) {
    const Json &a = *member(mine.options, name), &b = *member(theirs.options, name);
    if (a == b) return;
    list += concat(list.empty() ? "" : "; ", option_name(name), " is ", a.dump(), " on rank ", mine.rank,
                   " and ", b.dump(), " on rank ", theirs.rank);
  };
  for (const auto& [name, value] : mine.options.as_object()) compare(name);
  for (const auto& [name, value] : theirs.options.as_object())
    if (!mine.options.find(name)) compare(name);
  return list;
}

}  // namespace megalith
