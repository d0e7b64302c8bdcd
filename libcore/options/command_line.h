#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libcore/options/cli.h"

namespace megalith {

/// Which option a spelling means.
struct OptionMatch {
  size_t field = 0;      // index of the table's fields
  bool negated = false;  // the spelling sets a flag to false
};

/// Every spelling that an app accepts, in the form of option_key().
struct OptionTable {
  std::vector<const Field*> fields;
  std::map<std::string, OptionMatch, std::less<>> spellings;
  std::vector<OptionFate> fates = {};                             // of names that no field has
  std::function<std::string(const std::string&)> elsewhere = {};  // see Options::elsewhere()

  /// Throws kInternal when a spelling is already used.
  void add(const Field& field);
  const OptionMatch* find(const std::string& name) const;
  const OptionFate* find_fate(const std::string& name) const;
  /// "; did you mean "PREFIXnum-layers"?", or an empty text.
  std::string did_you_mean(const std::string& name, const std::string& prefix) const;
};

/// One option of a command line, in the order given.
struct GivenOption {
  size_t field = 0;
  std::vector<std::string> words;  // of a flag: "true" or "false", with --no- already applied
};
/// An option that has a fate and no field. It has no meaning here, but another reader may need it
/// (take_ignored()).
struct IgnoredOption {
  std::string name;                     // as given, for the log: "--transformer-impl"
  std::vector<std::string> words = {};  // its values; a flag may have none
  Spot where = {};                      // empty: only words for the log, such as a run file's key
};
/// An option that is refused unless the run lifts the refusal (lifted()).
struct ConditionalOption {
  const OptionFate* fate = nullptr;
  IgnoredOption option;
};
/// The given options that have fates and are not refused in every run.
struct FatedOptions {
  std::vector<IgnoredOption> ignored;
  std::vector<ConditionalOption> conditional;

  /// Takes an option that is ignored or conditional. One that is refused or lacks its value becomes a
  /// problem. Keeps a pointer to a conditional option's fate.
  void take(const OptionFate&, IgnoredOption, Problems&);
  void append(const FatedOptions&);
  /// Decides on the conditional options: each is ignored, or its refusal is added to the problems.
  void decide(const RunFacts&, Problems&);
};
struct CommandLine {
  std::vector<GivenOption> options;
  FatedOptions fated;
};

/// "true" for "false" and vice versa; anything else is unchanged and refused where the value is read.
std::string negate_word(const std::string& word);

/// Parses a command line. Whatever does not fit is added to `problems`.
CommandLine parse_command_line(const OptionTable&, const std::vector<std::string>& arguments, Problems&);

}  // namespace megalith
