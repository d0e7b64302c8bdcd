#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "libcore/json/json.h"

namespace megalith {

/// What a rank says when it comes to the rendezvous, so that rank 0 can reject one of another program,
/// version or job before it trains.
struct RankHello {
  std::string version = {};  // of the program
  std::string token = {};    // SHA-256 of the job's; never the token itself
  int rank = 0, world = 0;
  Json options = Json::object();  // resolved; alike on every rank
};

/// On the wire: "MGLRDZV1", the length in 4 bytes (little-endian), JSON.
std::string encode_hello(const RankHello&);

/// The hello at the beginning of `bytes`; nothing while bytes are missing. kData for anything else.
std::optional<RankHello> decode_hello(std::string_view bytes);

/// SHA-256 of a job token; empty for none.
std::string token_digest(const std::string& token);

/// Why rank 0, which says `mine`, does not take the one that says `theirs`; empty: it does. Options aside.
std::string refusal(const RankHello& mine, const RankHello& theirs);

/// Options that differ: "--lr is 0.1 on rank 0 and 0.2 on rank 3"; empty: none.
std::string option_differences(const RankHello& mine, const RankHello& theirs);

}  // namespace megalith
