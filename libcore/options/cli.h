#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/options/config_file.h"
#include "libcore/options/fate.h"
#include "libcore/options/fields.h"

namespace megalith {

/// A field of a shared struct that one app refuses.
struct WithdrawnOption {
  const char *name, *remedy;  // remedy: what to do instead
};

/// An option of another tool and what it is called here.
struct PeerName {
  const char* name;  // in the form of option_key()
  /// Begins with an option, which a comma, a semicolon or a blank may end: "--save and --load".
  const char* ours;
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
  /// Adds a rule between groups, or a check for something that the app does not support. Runs in check()
  /// after the structs' own rules.
  Options& rule(std::function<void(Problems&)> rule);
  /// Adds a step that fills values which depend on several groups. Runs in check() after the structs'
  /// finish().
  Options& derive(std::function<void()> step);
  /// Adds options of other tools, which `make` returns when they are first needed. Each one that is given is
  /// either rejected with its remedy, or ignored and named once in the log. A field of the same name takes
  /// precedence. Some fates apply only to one kind of run (OptionFate::only): `is_kind` says in check()
  /// whether the run is of that kind. Without `is_kind`, the run counts as every kind.
  Options& fates(std::function<std::vector<OptionFate>()> make,
                 std::function<bool(std::string_view kind)> is_kind = {});
  /// Adds a text to the log's line about ignored options, for a field whose values have no effect. Call
  /// before check() writes the line.
  void note_ignored(std::string words);
  /// Withdraws fields, which were added as part of a struct, from this app: they are not listed, and are
  /// rejected with their remedy. Throws kInternal if a field is not there or is named twice.
  Options& withdraw(std::span<const WithdrawnOption> options);
  /// Adds a reader for another tool's config files: it replaces those keys of the file that it knows by our
  /// options.
  Options& translate(std::function<void(FileTranslation&)> translator);
  /// Sets a function that is called for an unknown option, whose name it gets in the form of option_key(). It
  /// returns a text such as "; megalith-convert has it", or an empty one.
  Options& elsewhere(std::function<std::string(const std::string&)> who);
  /// Adds other tools' names of options. An unknown option of such a name is refused with ours as the hint,
  /// in the apps that have ours. The hint comes before elsewhere(). The table must outlive this object.
  Options& peer_names(std::span<const PeerName> names);
  /// Sets the text below the options of --help, such as examples. It must consist of whole lines.
  Options& epilog(std::string text);
  /// Environment variables that the app reads, and files that it writes or finds by itself, for the manual
  /// page.
  Options& environment(std::vector<NoteDoc> variables);
  Options& files(std::vector<NoteDoc> files);

  /// Calls read() and check(). Returns the text to print on stdout if the app is not to run (--help and the
  /// like), otherwise nothing.
  std::optional<std::string> parse(int argc, const char* const* argv);
  /// The first half of parse(), with the same result: reads --config and the command line. Problems are
  /// collected for check().
  std::optional<std::string> read(const std::vector<std::string>& arguments);
  /// Call between read() and check(). Options that are not on the command line get the values of a
  /// checkpoint's args. `groups` limits this to the options under some headings; empty: all. `from` names the
  /// checkpoint in messages. Members of `args` that are not options are skipped.
  void adopt(const Json& args, const std::string& from, const std::vector<std::string>& groups = {});
  /// Call after check() of some groups and before the log names the ignored options. For a reader that needs
  /// options which this app ignores (fates()): sets `fields`, which are not fields of this app, from the
  /// ignored options of the same names, and returns the names of those fields. The options are then obeyed,
  /// so the log does not name them. If an option is given twice, the same rules apply as to a field of this
  /// app.
  std::set<std::string> take_ignored(const std::vector<Field>& fields, Problems&);
  /// After read(): the problems so far. More can be added until check() throws.
  Problems& problems();
  /// The second half of parse(): calls finish() and validate() of every struct (or of the named groups), then
  /// runs the rules. Throws kUsage with all problems, one per line. If `groups` is empty, then logs the
  /// ignored options as tell_ignored() does. The groups in `given_only` are checked too, but in them no
  /// option is missing: for a program that uses only some of their options.
  void check(const std::vector<std::string>& groups = {}, const std::vector<std::string>& given_only = {});
  /// Logs the options that were ignored, each once.
  void tell_ignored();

  /// Where the option's value comes from: "default", "derived", "run.yaml:3", "checkpoint FROM" or "command
  /// line".
  const std::string& source(const std::string& option) const;
  bool given(const std::string& option) const;  // whether its source is neither "default" nor "derived"
  bool on_command_line(const std::string& option) const;
  bool in_config_file(const std::string& option) const;
  /// The given options of these groups, each as on a command line: {"--lr", "1e-3"}, {"--no-load-optim"}.
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
