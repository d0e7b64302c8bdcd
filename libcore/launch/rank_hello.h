#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "libcore/base/error.h"
#include "libcore/json/json.h"

namespace megalith {

/// The message with which a rank joins the rendezvous, so that rank 0 can refuse a rank of another version or
/// job before training begins.
struct RankHello {
  std::string version = {};  // of the program
  std::string job = {};      // the launcher's number of the job; it tells jobs apart and proves nothing
  int rank = 0, world = 0;
  Json options = Json::object();  // resolved; the same on every rank

  template <class V>
  void fields(V&& v) {  // see json/json_fields.h
    v("version", version);
    v("job", job);
    v("rank", rank);
    v("world", world);
    v("options", options);
  }
};

constexpr size_t kMaxHello = size_t{1} << 20;  // bytes: a hundred times what the options of a run need

/// Encodes it as JSON.
std::string encode_hello(const RankHello&);
/// kData if `bytes` do not hold a hello.
RankHello decode_hello(std::string_view bytes);

/// Why rank 0, whose own hello is `mine`, refuses the rank that sent `theirs`; empty if it does not. Options
/// are not compared.
std::string refusal(const RankHello& mine, const RankHello& theirs);

/// The options that differ: "--lr is 0.1 on rank 0 and 0.2 on rank 3"; empty if none does. At most about
/// 2,000 bytes, all printable.
std::string option_differences(const RankHello& mine, const RankHello& theirs);

/// Rank 0 answers a hello with an error or with kWelcome, which is empty. When all ranks have joined, or at
/// the deadline, it sends an error or kWelcome once more.
constexpr std::string_view kWelcome = "";
constexpr size_t kMaxAnswer = size_t{1} << 16;
/// Encodes it as JSON.
std::string encode_failure(const Error&);
/// Throws the error that `answer` holds, with `where` before its message: kComm or kUsage, printable and at
/// most about 4,000 bytes. kComm if `answer` holds no error.
[[noreturn]] void fail_as(std::string_view answer, const std::string& where);

/// Where rank 0 listens; it goes through the store of torchrun's agent.
struct RankAddress {
  std::string host = {};
  int port = 0;
  template <class V>
  void fields(V&& v) {
    v("host", host);
    v("port", port);
  }
};
/// Encodes it as JSON.
std::string encode_address(const RankAddress&);
/// kData if `bytes`, those of the store's key `name`, do not hold an address.
RankAddress decode_address(std::string_view bytes, const std::string& name);

}  // namespace megalith
