#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libcore/options/cli.h"

namespace megalith {

/// The option that a spelling stands for.
struct OptionMatch {
  size_t field = 0;      // index into OptionTable::fields
  bool negated = false;  // the spelling sets the flag to false
};

/// The fates of other tools' options. They are made when they are first needed: most command lines have no
/// such option, and making them takes a tenth of the time in which a program starts.
class FateTable {
 public:
  void add(std::function<std::vector<OptionFate>()> make) { makers_.push_back(std::move(make)); }
  const std::vector<OptionFate>& all() const;

 private:
  mutable std::vector<std::function<std::vector<OptionFate>()>> makers_;  // not called yet
  mutable std::vector<OptionFate> made_;
};

/// All spellings that an app accepts, in the form of option_key().
struct OptionTable {
  std::vector<const Field*> fields;
  std::map<std::string, OptionMatch, std::less<>> spellings;
  FateTable fates = {};                                           // fates of names that no field has
  std::function<std::string(const std::string&)> elsewhere = {};  // see Options::elsewhere()
  std::span<const PeerName> peers = {};                           // see Options::peer_names()

  /// Throws kInternal when a spelling is already used.
  void add(const Field& field);
  const OptionMatch* find(const std::string& name) const;
  const OptionFate* find_fate(const std::string& name) const;
  /// A suggestion for an unknown name, such as "; did you mean "PREFIXnum-layers"?"; empty if no name is
  /// similar.
  std::string did_you_mean(const std::string& name, const std::string& prefix) const;

 private:
  /// What the option of another tool is called here; null if the name is not another tool's or the app lacks
  /// ours.
  const char* ours_of(const std::string& name) const;
};

/// One option of a command line, in the order given.
struct GivenOption {
  size_t field = 0;
  std::vector<std::string> words;  // values; for a flag "true" or "false", with --no- already applied
  std::string spelling = {};       // the name as given, without dashes; empty for a positional word
};
/// An ignored option of another tool: it has a fate, but no field. It has no effect, but another reader may
/// need it (take_ignored()).
struct IgnoredOption {
  std::string name;                     // as given and as logged: "--transformer-impl"
  std::vector<std::string> words = {};  // its values; a flag may have none
  Spot where = {};                      // empty: `name` is only a text for the log, such as a run file's key
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

  /// Adds an option that is ignored or conditional. If the option is refused, or if it has the wrong number
  /// or kind of values, adds a problem instead. Keeps a pointer to the fate of a conditional option.
  void take(const OptionFate&, IgnoredOption, Problems&);
  void append(const FatedOptions&);
  /// Decides on the conditional options: each is ignored, or its refusal is added to the problems.
  void decide(const RunFacts&, Problems&);
};
struct CommandLine {
  std::vector<GivenOption> options;
  FatedOptions fated;
};

/// Returns "true" for "false" and vice versa. Any other word is returned as it is, and refused where the
/// value is read.
std::string negate_word(const std::string& word);

/// Parses a command line. Adds a problem for each word that does not fit.
CommandLine parse_command_line(const OptionTable&, const std::vector<std::string>& arguments, Problems&);

}  // namespace megalith
