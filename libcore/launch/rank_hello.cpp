#include "libcore/launch/rank_hello.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "libcore/base/error.h"
#include "libcore/base/terminal.h"

namespace megalith {
namespace {

constexpr size_t kMaxValue = 500, kMaxDifferences = 2000, kMaxFailure = 4000;  // bytes in a message

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
  json.set("job", hello.job);
  json.set("rank", hello.rank);
  json.set("world", hello.world);
  json.set("options", hello.options);
  return json.dump();
}

RankHello decode_hello(std::string_view bytes) {
  const Json json = Json::parse(bytes, "hello");
  RankHello hello{.version = json["version"].as_string(),
                  .job = json["job"].as_string(),
                  .rank = count(json, "rank"),
                  .world = count(json, "world"),
                  .options = json["options"]};
  (void)hello.options.as_object();  // throws kData if it is not an object
  return hello;
}

std::string refusal(const RankHello& mine, const RankHello& theirs) {
  if (theirs.version != mine.version)
    return concat("it has version ", printable(theirs.version, kMaxValue), ", rank ", mine.rank, " has ",
                  mine.version);
  if (theirs.job != mine.job)
    return concat("it belongs to another job of the launcher (TORCHELASTIC_RUN_ID or SLURM_JOB_ID): ",
                  quote_name(theirs.job), ", rank ", mine.rank, " to ", quote_name(mine.job));
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
    list += concat(list.empty() ? "" : "; ", option_name(name), " is ", printable(a.dump(), kMaxValue),
                   " on rank ", mine.rank, " and ", printable(b.dump(), kMaxValue), " on rank ", theirs.rank);
  };
  for (const auto& [name, value] : mine.options.as_object()) compare(name);
  for (const auto& [name, value] : theirs.options.as_object())
    if (!mine.options.find(name)) compare(name);
  return printable(list, kMaxDifferences);
}

std::string encode_failure(const Error& error) {
  Json answer = Json::object();
  answer.set("exit_code", exit_code(error.kind()));
  answer.set("message", error.what());
  return answer.dump();
}

void fail_as(std::string_view answer, const std::string& where) {
  bool usage = false;
  std::string message;
  try {
    const Json error = Json::parse(answer, "an answer");
    usage = error["exit_code"].as_int() != exit_code(ErrorKind::kComm);
    message = error["message"].as_string();
  } catch (const Error&) {
    message = "its answer does not come from this program";
  }
  fail(usage ? ErrorKind::kUsage : ErrorKind::kComm, where, ' ', printable(message, kMaxFailure));
}

}  // namespace megalith
