#include "libcore/doctor/finding.h"

#include <algorithm>
#include <array>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

constexpr std::array<const char*, 3> kNames = {"ok", "warning", "bad"};

Finding::State state_of(const std::string& word) {
  const auto* const at = std::find(kNames.begin(), kNames.end(), word);
  if (at == kNames.end()) fail(ErrorKind::kData, "state ", quote(word), ", wanted ok, warning or bad");
  return static_cast<Finding::State>(at - kNames.begin());
}

}  // namespace

const char* name(Finding::State state) {
  return kNames[static_cast<size_t>(state)];
}

Finding finding_of(std::string check, Finding::State state, const std::string& message) {
  const size_t end = std::min(message.rfind("; "), message.size());
  return {.check = std::move(check),
          .state = state,
          .text = message.substr(0, end),
          .remedy = end < message.size() ? message.substr(end + 2) : std::string()};
}

Json to_json(const Findings& findings) {
  Json all = Json::array();
  for (const Finding& one : findings)
    all.push_back(Json::Object{
        {"check", one.check}, {"state", name(one.state)}, {"found", one.text}, {"remedy", one.remedy}});
  return all;
}

Findings findings_of(const Json& json) {
  Findings all;
  for (const Json& one : json.as_array())
    all.push_back({.check = one["check"].as_string(),
                   .state = state_of(one["state"].as_string()),
                   .text = one["found"].as_string(),
                   .remedy = one["remedy"].as_string()});
  return all;
}

}  // namespace megalith
