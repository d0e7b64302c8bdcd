#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/json/json.h"

namespace megalith {

/// What one check found out about this machine.
struct Finding {
  /// kBad: runs of some kind fail. kWarning: they may fail, or are slow.
  enum class State : uint8_t { kGood, kWarning, kBad };

  std::string check;  // "memory"
  State state = State::kGood;
  std::string text;    // what was found
  std::string remedy;  // what to do about it; empty if there is nothing to do

  bool operator==(const Finding&) const = default;
};
using Findings = std::vector<Finding>;

const char* name(Finding::State state);  // "ok", "warning", "bad"

/// A finding about a message of an Error: what follows its last "; " says what to do.
Finding finding_of(std::string check, Finding::State state, const std::string& message);

Json to_json(const Findings& findings);
/// Throws kData if `json` is not what to_json() gives.
Findings findings_of(const Json& json);

}  // namespace megalith
