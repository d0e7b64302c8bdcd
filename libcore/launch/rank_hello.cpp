#include "libcore/launch/rank_hello.h"

#include <cstdint>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/json/json_fields.h"
#include "libcore/options/fields.h"

namespace megalith {
namespace {

constexpr size_t kMaxValue = 500, kMaxDifferences = 2000, kMaxFailure = 4000;  // bytes in a message

const Json* member(const Json& options, const std::string& name) {
  static const Json kNone;
  const Json* const found = options.find(name);
  return found ? found : &kNone;
}

bool is_code_of_error(int64_t code) {
  return code >= exit_code(ErrorKind::kUsage) && code <= exit_code(ErrorKind::kComm);
}

/// Rank 0's answer to a rank that it refuses.
struct Failure {
  int64_t exit_code = 0;
  std::string message = {};
  template <class V>
  void fields(V&& v) {
    v("exit_code", exit_code);
    v("message", message);
  }
};

template <class Message>
std::string encoded(const Message& message) {
  Json json = Json::object();
  add_fields(json, message);
  return json.dump();
}

}  // namespace

std::string encode_hello(const RankHello& hello) {
  return encoded(hello);
}

RankHello decode_hello(std::string_view bytes) {
  auto hello = read_fields<RankHello>(Json::parse(bytes, "hello"));
  for (const auto& [name, value] : {std::pair("rank", hello.rank), {"world", hello.world}})
    if (value < 0) fail(ErrorKind::kData, "a hello whose ", name, " is ", value);
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
    list += concat(list.empty() ? "" : "; ", "--", option_key(name), " is ", printable(a.dump(), kMaxValue),
                   " on rank ", mine.rank, " and ", printable(b.dump(), kMaxValue), " on rank ", theirs.rank);
  };
  for (const auto& [name, value] : mine.options.as_object()) compare(name);
  for (const auto& [name, value] : theirs.options.as_object())
    if (!mine.options.find(name)) compare(name);
  return printable(list, kMaxDifferences);
}

std::string encode_failure(const Error& error) {
  return encoded(Failure{.exit_code = exit_code(error.kind()), .message = error.what()});
}

void fail_as(std::string_view answer, const std::string& where) {
  bool usage = false;
  std::string message;
  try {
    const auto failure = read_fields<Failure>(Json::parse(answer, "an answer"));
    usage = failure.exit_code != exit_code(ErrorKind::kComm);
    if (is_code_of_error(failure.exit_code)) message = failure.message;
  } catch (const Error&) {  // told below
  }
  if (trim(message).empty()) {
    usage = false;
    message = "its answer does not come from this program";
  }
  fail(usage ? ErrorKind::kUsage : ErrorKind::kComm, where, ' ', printable(message, kMaxFailure));
}

std::string encode_address(const RankAddress& address) {
  return encoded(address);
}

RankAddress decode_address(std::string_view bytes, const std::string& name) {
  auto address = read_fields<RankAddress>(Json::parse(bytes, name));
  if (address.host.empty() || address.port < 1 || address.port > 65535)
    fail(ErrorKind::kData, name, ": no host and port");
  return address;
}

}  // namespace megalith
