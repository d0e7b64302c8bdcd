#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/options/config_file.h"
#include "libcore/options/fate.h"
#include "libcore/options/fields.h"

namespace megalith {

/// A field of a shared struct that an app always refuses.
struct WithdrawnOption {
  const char *name, *remedy;  // what to do instead
};

/// A name and its explanation in a manual page.
struct NoteDoc {
  std::string name, text;
};

/// The options of one app.
///
///   MergeOptions merge;
///   Options options("merge", "Join datasets into one.");
///   options.add("Merging", merge);
///   if (!parse_options(options, argc, argv)) return 0;     // apps/app.h; --help was printed
///
/// Every app also has --help (-h), --version, --quiet, --config FILE and, unlisted, --help-markdown,
/// --help-man, --help-bash-completion, --help-zsh-completion, --help-fish-completion and --help-purpose.
///
/// On the command line "-" and "_" are the same in a name; a flag is --flag, --no-flag or --flag
/// true|false|1|0; an option takes its value as the next word or after "=".
///
/// Precedence: defaults < --config < adopt() < command line.
class Options {
 public:
  Options(std::string app, std::string purpose);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  /// Adds a config struct's fields under a heading. `config` must outlive this object.
  template <class Config>
  Options& add(const std::string& group, Config& config) {
    Group g{.name = group, .fields = fields_of(config)};
    if constexpr (requires { config.finish(); }) g.finish = [&config] { config.finish(); };
    if constexpr (requires(Problems & p) { config.validate(p); })
      g.validate = [&config](Problems& p) { config.validate(p); };
    add_group(std::move(g));
    return *this;
  }
  /// A rule between groups, or the app's refusal of something that it does not support; runs in check() after
  /// the structs' own rules.
  Options& rule(std::function<void(Problems&)> rule);
  /// Fills values that depend on several groups; runs in check() after the structs' finish().
  Options& derive(std::function<void()> step);
  /// Options of other tools: each is named once in the log as ignored, or rejected with its remedy. A field
  /// of the same name takes precedence. `is_kind` says in check() whether the run is of a kind that a fate
  /// names (OptionFate::only); without it, the run counts as every kind.
  Options& fates(std::span<const OptionFate> options,
                 std::function<bool(std::string_view kind)> is_kind = {});
  /// Adds words to the log's line about ignored options, for a field whose values have no effect. To be
  /// called before check() writes the line.
  void note_ignored(std::string words);
  /// Fields that were added but that this app does not list; they are rejected with their remedy.
  Options& withdraw(std::span<const WithdrawnOption> options);
  /// A reader for another tool's config files: replaces the file's keys that it knows by our options.
  Options& translate(std::function<void(FileTranslation&)> translator);
  /// Called for an unknown option; returns text such as "; megalith-convert has it", or nothing.
  Options& elsewhere(std::function<std::string(const std::string&)> who);
  /// Text below the options of --help, such as examples; must consist of whole lines.
  Options& epilog(std::string text);
  /// Environment variables that the app reads, and files that it writes or finds by itself, for the manual
  /// page.
  Options& environment(std::vector<NoteDoc> variables);
  Options& files(std::vector<NoteDoc> files);

  /// Calls read() and check(). Returns the text to print on stdout instead of running (--help and the like),
  /// otherwise nothing.
  std::optional<std::string> parse(int argc, const char* const* argv);
  /// First half of parse(), with the same result: reads --config and the command line. Complaints are
  /// collected for check().
  std::optional<std::string> read(const std::vector<std::string>& arguments);
  /// Between read() and check(): takes values from a checkpoint's args for options that the command line does
  /// not give. `groups` limits this to some headings; empty: all. `from` names the checkpoint in messages.
  /// Members of `args` that are not options are skipped.
  void adopt(const Json& args, const std::string& from, const std::vector<std::string>& groups = {});
  /// After read(): sets `fields`, which this app does not have, from the options of these names that it
  /// ignores (fates()), for a reader that needs them. If an option is given twice, the last one counts.
  void take_ignored(const std::vector<Field>& fields, Problems&) const;
  /// After read(): the complaints so far. More can be added until check() throws them all.
  Problems& problems();
  /// Second half of parse(): calls finish() and validate() of every struct (or of the named groups), then the
  /// rules; throws kUsage with all complaints, one per line. Without `groups` it then logs as tell_ignored()
  /// does.
  void check(const std::vector<std::string>& groups = {});
  /// Logs the options that were ignored, each once.
  void tell_ignored();

  /// "default", "derived", "run.yaml:3", "checkpoint FROM" or "command line".
  const std::string& source(const std::string& option) const;
  bool given(const std::string& option) const;  // its source is neither default nor derived
  bool on_command_line(const std::string& option) const;
  bool in_config_file(const std::string& option) const;
  /// The options of these groups that were given, each as the words of a command line: {"--lr", "1e-3"},
  /// {"--no-load-optim"}.
  std::vector<std::vector<std::string>> given_words(const std::vector<std::string>& groups) const;
  /// The file given to --config; empty: none.
  const std::string& config_file() const;
  /// All options as JSON, for a checkpoint's args.
  Json to_json() const;
  /// One line per option with its value and source, for the log at the start.
  std::vector<std::string> describe() const;

  std::string help(int width = 80) const;
  std::string markdown() const;
  std::string man() const;
  std::string bash_completion() const;

 private:
  struct Group {
    std::string name;
    std::vector<Field> fields = {};
    std::function<void()> finish = {};
    std::function<void(Problems&)> validate = {};
  };
  void add_group(Group group);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace megalith
