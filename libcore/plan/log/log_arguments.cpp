#include "libcore/plan/log/log_arguments.h"

#include <set>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/plan/shape/model_shape.h"

namespace megalith {
namespace {

/// Whether `name` is not one of our options, and the planner refuses its value.
bool is_refused(const LogArguments& in, const std::string& name, const RunFacts& run) {
  const ForeignOption* const option = in.has(name) ? logged_option(name) : nullptr;
  return option && refuses(*option, in.words(name)) && !lifted(*option, in.words(name), run);
}

/// "'aux_loss'" becomes aux_loss.
std::string plain_word(std::string_view word) {
  word = trim(word);
  if (word.size() >= 2 && word.front() == '\'' && word.back() == '\'') word = word.substr(1, word.size() - 2);
  return word == "True" ? "true" : word == "False" ? "false" : std::string(word);
}

}  // namespace

std::string LogArguments::word(const std::string& name) const {
  const auto at = arguments_.find(name);
  return at == arguments_.end() ? "" : at->second;
}

bool LogArguments::has(const std::string& name) const {
  const std::string value = word(name);
  return !value.empty() && value != "None";
}

int LogArguments::number(const char* name, int otherwise) const {
  if (!has(name)) return otherwise;
  const auto value = parse_int(word(name));
  if (!value || *value < 0 || *value > 1 << 30) refuse(name, "a number");
  return static_cast<int>(*value);
}

double LogArguments::share(const char* name, double otherwise) const {
  if (!has(name)) return otherwise;
  const auto value = parse_double(word(name));
  if (!value || !(*value >= 0 && *value <= 1)) refuse(name, "a number from 0 to 1");
  return *value;
}

bool LogArguments::flag(const char* name, bool otherwise) const {
  const auto at = arguments_.find(name);
  return at == arguments_.end() ? otherwise : at->second == "True";
}

std::vector<std::string> LogArguments::words(const std::string& name) const {
  std::string value = word(name);
  if (value.size() < 2 || value.front() != '[' || value.back() != ']') return {plain_word(value)};
  std::vector<std::string> out;
  for (const std::string& one : split(value.substr(1, value.size() - 2), ',')) out.push_back(plain_word(one));
  return out;
}

void LogArguments::unpriced(const std::string& name) const {
  fail(ErrorKind::kUsage, path_, ": ", name, " is ", quote(word(name)),
       ", which is not priced: the log would be compared with a different run");
}

void LogArguments::refuse(const char* name, const std::string& wanted) const {
  fail(ErrorKind::kData, path_, ": ", name, " is ", quote(word(name)), ", wanted ", wanted);
}

void refuse_unpriced(const LogArguments& in, const RunKind& kind) {
  const RunFacts run = {.is = [&](std::string_view one) { return kind.has(one); },
                        .value_of = [&](std::string_view option) { return in.word(json_key(option)); }};
  std::set<std::string> ours;
  ModelShape shape;
  for (const Field& field : fields_of(shape)) ours.insert(json_key(field.name));
  for (const auto& [name, value] : in.all())
    if (!ours.contains(name) && is_refused(in, name, run)) in.unpriced(name);
}

}  // namespace megalith
