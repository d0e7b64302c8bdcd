#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "libcore/json/json.h"

namespace megalith {

/// What a rank says when it joins the rendezvous: rank 0 can then refuse one of another program, version or
/// job before training begins.
struct RankHello {
  std::string version = {};  // of the program
  std::string token = {};    // SHA-256 of the job's; never the token itself
  int rank = 0, world = 0;
  Json options = Json::object();  // resolved; the same on every rank
};

/// On the wire: "MGLRDZV1", the length in 4 bytes (little-endian), then JSON.
std::string encode_hello(const RankHello&);

/// The hello at the beginning of `bytes`; nothing while it is incomplete. kData for anything else.
std::optional<RankHello> decode_hello(std::string_view bytes);

/// The SHA-256 of a job token; empty if there is none.
std::string token_digest(const std::string& token);

/// Why rank 0, with the hello `mine`, refuses the rank that sent `theirs`; empty if it does not. Options are
/// not compared.
std::string refusal(const RankHello& mine, const RankHello& theirs);

/// The options that differ: "--lr is 0.1 on rank 0 and 0.2 on rank 3"; empty if none does.
std::string option_differences(const RankHello& mine, const RankHello& theirs);

}  // namespace megalith
