#include "libcore/options/cli.h"

#include <algorithm>
#include <deque>

#include <unistd.h>

#include "libcore/base/log.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/options/command_line.h"
#include "libcore/options/completion.h"
#include "libcore/options/config_file.h"
#include "libcore/options/render.h"
#include "libcore/options/version_text.h"

namespace megalith {

namespace {
constexpr const char* kGeneralGroup = "General";

/// The options that every app has.
struct General {
  std::string config;
  bool help = false, version = false, quiet = false;
  bool markdown = false, man = false, purpose = false;
  bool bash_completion = false, zsh_completion = false, fish_completion = false;

  template <class V>
  void fields(V&& v) {
    v("config", config, "Read options from this YAML or JSON file; the command line has precedence.",
      metavar("FILE"));
    v("quiet", quiet, "Draw no progress line.");
    v("help", help, "Print this text.", alias({"-h"}));
    v("version", version, "Print the version.");
    v("help-markdown", markdown, "Print this text as Markdown.", unlisted());
    v("help-man", man, "Print the manual page.", unlisted());
    v("help-bash-completion", bash_completion, "Print the completion script for bash.", unlisted());
    v("help-zsh-completion", zsh_completion, "Print the completion script for zsh.", unlisted());
    v("help-fish-completion", fish_completion, "Print the completion script for fish.", unlisted());
    v("help-purpose", purpose, "Print what this command is for, in one line.", unlisted());
  }
};

/// Where the value of an option comes from.
enum class Giver { kDefault, kDerived, kFile, kAdopted, kCommandLine };
struct Source {
  Giver giver = Giver::kDefault;
  std::string text = "default";  // as messages show it: "run.yaml:3", "checkpoint FROM"
};
const Source kDerived = {Giver::kDerived, "derived"};
const Source kCommandLine = {Giver::kCommandLine, "command line"};

struct Entry {
  Field field;
  size_t group;
  Source source = {};
  std::string default_value;
  const char* remedy = nullptr;  // the remedy of a withdrawn option, else null

  bool given_by(Giver giver) const { return source.giver == giver; }
  bool given() const { return !given_by(Giver::kDefault) && !given_by(Giver::kDerived); }
};

/// Collects the values of an option that a command line gives several times.
class WordLists {
 public:
  /// All values of the field so far, if it takes several; else `words`.
  const std::vector<std::string>& joined(const Field& field, const std::vector<std::string>& words) {
    if (!takes_several(field) || field.last_counts) return words;
    std::vector<std::string>& all = lists_[&field];
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }

 private:
  std::map<const Field*, std::vector<std::string>> lists_;
};

/// The names under which a command line gives each option, in the order given.
class GivenNames {
 public:
  /// Notes the value that the option has now. Under one name the last value counts, as with argparse, so that
  /// a script's line can be extended.
  void add(const Field& field, const std::string& spelling) {
    if (spelling.empty() || takes_several(field) || is_flag(field)) return;  // a positional word has no name
    const auto same = std::find_if(given_.begin(), given_.end(), [&](const Given& one) {
      return one.field == &field && option_key(one.spelling) == option_key(spelling);
    });
    if (same == given_.end())
      given_.push_back({&field, spelling, field_value(field)});
    else
      same->value = field_value(field);
  }
  /// Adds a problem for each name whose value is not that of the option's first name.
  void check(Problems& problems) const {
    for (const Given& one : given_) {
      const Given& first = *std::find_if(given_.begin(), given_.end(),
                                         [&](const Given& other) { return other.field == one.field; });
      if (first.value != one.value)
        problems.add("--", first.spelling, " ", first.value.dump(), " and --", one.spelling, " ",
                     one.value.dump(), " are two names of one option; give one of them");
    }
  }

 private:
  struct Given {
    const Field* field;
    std::string spelling;
    Json value;
  };
  std::vector<Given> given_;
};

bool among(const std::string& name, const std::vector<std::string>& names) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}
}  // namespace

struct Options::State {
  std::string app, purpose, epilog;
  std::vector<NoteDoc> environment, files;
  General general;
  std::deque<Entry> entries;  // a deque, since the table points to the fields
  std::vector<Group> groups;  // the fields of these groups were moved to `entries`
  OptionTable table;          // field i of the table is the field of entries[i]
  std::vector<std::function<void(FileTranslation&)>> translators;
  std::vector<std::function<void()>> steps;
  std::vector<std::function<void(Problems&)>> rules;
  Problems problems;
  FatedOptions fated;
  size_t told = 0;  // index of the first ignored option that the log has not named
  std::function<bool(std::string_view)> is_kind;

  bool is_general(const Entry& entry) const { return groups[entry.group].name == kGeneralGroup; }
  bool in(const Entry& entry, const std::vector<std::string>& names) const {
    return !is_general(entry) && among(groups[entry.group].name, names);
  }
  std::vector<Field> fields() const {
    std::vector<Field> list;
    for (const Entry& entry : entries)
      if (!is_general(entry)) list.push_back(entry.field);
    return list;
  }
  size_t index(const std::string& option) const {
    const OptionMatch* match = table.find(option);
    if (!match) fail(ErrorKind::kInternal, "no option is called --", option);
    return match->field;
  }
  const Entry& entry(const std::string& option) const { return entries[index(option)]; }

  std::vector<FileOption> translated_file(const std::string& path);
  void take_config_file(const std::string& path);
  void take_command_line(const CommandLine& line);
  void finish(const std::vector<std::string>& names);
  void find_missing(const std::vector<std::string>& names, Problems& found) const;
  void validate(const std::vector<std::string>& names, Problems& found) const;
  RunFacts run_facts() const;
  const std::string* name_in(const Problem& problem, const Entry& entry) const;
  Problems with_places(const Problems& all) const;
  AppDoc document() const;
  /// The documentation together with the values that a shell can offer. Only a completion script needs these,
  /// and collecting them may read a file.
  AppDoc completion() const;
};

Options::Options(std::string app, std::string purpose) : state_(std::make_unique<State>()) {
  state_->app = "megalith-" + std::move(app);
  state_->purpose = std::move(purpose);
  environment(
      {{"COLUMNS",
        "Width of --help, and of megalith-data's tables, if the output is not a terminal; 80 when unset. "
        "Other tables are never wrapped then."},
       {"MEGALITH_ISA",
        "Instruction set to use: generic, avx2, avx512 and so on; the best one when unset."}});
  add(kGeneralGroup, state_->general);
}

Options::~Options() = default;

void Options::add_group(Group group) {
  for (Field& field : group.fields) {
    std::string text = field_text(field);
    state_->entries.push_back(
        {.field = std::move(field), .group = state_->groups.size(), .default_value = std::move(text)});
    state_->table.add(state_->entries.back().field);
  }
  group.fields.clear();
  state_->groups.push_back(std::move(group));
}

Options& Options::rule(std::function<void(Problems&)> rule) {
  state_->rules.push_back(std::move(rule));
  return *this;
}

Options& Options::derive(std::function<void()> step) {
  state_->steps.push_back(std::move(step));
  return *this;
}

Options& Options::fates(std::function<std::vector<OptionFate>()> make,
                        std::function<bool(std::string_view kind)> is_kind) {
  if (is_kind) state_->is_kind = std::move(is_kind);
  state_->table.fates.add(std::move(make));
  return *this;
}

Options& Options::withdraw(std::span<const WithdrawnOption> options) {
  for (const WithdrawnOption& option : options) {
    Entry& entry = state_->entries[state_->index(option.name)];
    if (entry.remedy) fail(ErrorKind::kInternal, "--", option.name, " is withdrawn twice");
    entry.field.unlisted = true;
    entry.remedy = option.remedy;
  }
  return *this;
}

Options& Options::translate(std::function<void(FileTranslation&)> translator) {
  state_->translators.push_back(std::move(translator));
  return *this;
}

Options& Options::elsewhere(std::function<std::string(const std::string&)> who) {
  state_->table.elsewhere = std::move(who);
  return *this;
}

Options& Options::peer_names(std::span<const PeerName> names) {
  state_->table.peers = names;
  return *this;
}

Options& Options::epilog(std::string text) {
  state_->epilog = std::move(text);
  return *this;
}

Options& Options::environment(std::vector<NoteDoc> variables) {
  state_->environment.insert(state_->environment.end(), variables.begin(), variables.end());
  return *this;
}

Options& Options::files(std::vector<NoteDoc> files) {
  state_->files = std::move(files);
  return *this;
}

std::vector<FileOption> Options::State::translated_file(const std::string& path) {
  FileTranslation file{.options = read_config_file(path),
                       .problems = problems,
                       .knows = [this](const std::string& name) { return table.find(name) != nullptr; }};
  for (const auto& translator : translators) translator(file);
  for (std::string& name : file.ignored) fated.ignored.push_back({.name = std::move(name)});
  return std::move(file.options);
}

void Options::State::take_config_file(const std::string& path) {
  constexpr int kSuggested =
      10;  // a file with more unknown options belongs to another program, so suggestions do not help
  int unknown = 0;
  std::map<size_t, std::string> seen;  // maps a field to the place that set it
  for (FileOption& option : translated_file(path)) {
    const OptionMatch* match = table.find(option.key);
    const OptionFate* fate = match ? nullptr : table.find_fate(option.key);
    if (!match && !fate)
      problems.add_at(option.where, "unknown option ", quote(option.key),
                      ++unknown <= kSuggested ? table.did_you_mean(option.key, "") : "");
    if (option.is_null) continue;  // a key without a value sets nothing
    if (fate)
      fated.take(*fate, {.name = option.key, .words = option.words, .where = {option.where, option.key}},
                 problems);
    if (!match) continue;
    if (is_general(entries[match->field])) {
      problems.add_at(option.where, quote(option.key), " belongs on the command line");
      continue;
    }
    Entry& entry = entries[match->field];
    if (entry.remedy) {
      problems.add_at(option.where, option.key, " is not supported; ", entry.remedy);
      continue;
    }
    const auto [first, fresh] = seen.emplace(match->field, option.where);
    if (!fresh) problems.add_at(option.where, quote(option.key), " is already set at ", first->second);
    if (match->negated)
      for (std::string& word : option.words) word = negate_word(word);
    set_field(entry.field, option.words, {option.where, option.key}, problems);
    entry.source = {Giver::kFile, option.where};
  }
}

void Options::State::take_command_line(const CommandLine& line) {
  fated.append(line.fated);
  WordLists lists;
  GivenNames names;
  for (const GivenOption& given : line.options) {
    Entry& entry = entries[given.field];
    if (entry.remedy) {
      problems.add(Opt{entry.field.name}, " is not supported; ", entry.remedy);
      continue;
    }
    const size_t before = problems.list().size();
    set_field(entry.field, lists.joined(entry.field, given.words), {{}, entry.field.name}, problems);
    if (problems.list().size() == before) names.add(entry.field, given.spelling);
    entry.source = kCommandLine;
  }
  names.check(problems);
}

std::optional<std::string> Options::read(const std::vector<std::string>& arguments) {
  const CommandLine line = parse_command_line(state_->table, arguments, state_->problems);
  const General& general = state_->general;
  for (const GivenOption& given : line.options) {
    const Entry& entry = state_->entries[given.field];
    if (state_->is_general(entry))
      set_field(entry.field, given.words, {{}, entry.field.name}, state_->problems);
  }
  if (general.help) return help(static_cast<int>(columns_of(STDOUT_FILENO)));
  if (general.version) return version_text(state_->app);
  if (general.markdown) return markdown();
  if (general.man) return man();
  if (general.bash_completion) return bash_completion();
  if (general.zsh_completion) return render_zsh_completion(state_->completion());
  if (general.fish_completion) return render_fish_completion(state_->completion());
  if (general.purpose) return state_->purpose + '\n';
  if (general.quiet) set_quiet(true);
  if (!general.config.empty()) state_->take_config_file(general.config);
  state_->take_command_line(line);
  return std::nullopt;
}

void Options::adopt(const Json& args, const std::string& from, const std::vector<std::string>& groups) {
  for (Entry& entry : state_->entries) {
    if (!state_->in(entry, groups) || entry.given_by(Giver::kCommandLine)) continue;
    if (from_json({entry.field}, args, from, state_->problems) > 0)
      entry.source = {Giver::kAdopted, "checkpoint " + from};
  }
}

void Options::State::finish(const std::vector<std::string>& names) {
  std::vector<Json> before;
  for (const Entry& entry : entries) before.push_back(field_value(entry.field));
  for (const Group& group : groups)
    if (group.finish && among(group.name, names)) group.finish();
  if (names.empty())
    for (const auto& step : steps) step();
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].given_by(Giver::kDefault) && field_value(entries[i].field) != before[i])
      entries[i].source = kDerived;
}

void Options::State::find_missing(const std::vector<std::string>& names, Problems& found) const {
  for (const Entry& entry : entries) {
    if (!entry.field.required || !entry.given_by(Giver::kDefault) || !in(entry, names)) continue;
    if (entry.field.positional)
      found.add(megalith::document(entry.field, {}).spelling, " is missing");
    else
      found.missing({entry.field.name});
  }
}

void Options::State::validate(const std::vector<std::string>& names, Problems& found) const {
  for (const Group& group : groups)
    if (group.validate && among(group.name, names)) group.validate(found);
}

namespace {
/// Leaves out the problem that an option is missing if another problem is about its refused value, so that
/// one mistake causes one message.
Problems without_echoes(const Problems& all) {
  Problems out;
  for (const Problem& problem : all.list()) {
    const auto tells_more = [&](const Problem& other) {
      return other.option == problem.option && !other.found.empty();
    };
    if (!problem.missing || std::none_of(all.list().begin(), all.list().end(), tells_more)) out.add(problem);
  }
  return out;
}
}  // namespace

/// Adds a note to each problem that is not about a line of the file, but names an option that the file gives.
/// The note says which line of the file gives the option: "... (run.yaml:3: parallel_config.micro_batch_num
/// gives --gradient-accumulation-steps)".
Problems Options::State::with_places(const Problems& all) const {
  Problems out;
  for (Problem problem : all.list()) {
    std::map<std::string, std::string> places;  // maps a line of the file to the options that it gives
    for (const Entry& entry : entries) {
      if (!problem.place.empty() || !entry.given_by(Giver::kFile)) continue;
      const std::string* const name = name_in(problem, entry);
      if (!name) continue;
      std::string& options = places[entry.source.text];
      options += (options.empty() ? "--" : ", --") + *name;
    }
    std::vector<std::string> notes;
    for (const auto& [place, options] : places) notes.push_back(concat(place, " gives ", options));
    problem.note = join(notes, "; ");
    out.add(std::move(problem));
  }
  return out;
}

/// The name by which the problem calls the option: its own name, an alias or --no-NAME. Null if the problem
/// does not name the option.
const std::string* Options::State::name_in(const Problem& problem, const Entry& entry) const {
  for (const std::string& name : problem.options)
    if (const OptionMatch* const match = table.find(name);
        match && table.fields[match->field] == &entry.field)
      return &name;
  return nullptr;
}

RunFacts Options::State::run_facts() const {
  return {.is = is_kind, .value_of = [this](std::string_view option) {
            const Entry& one = entry(std::string(option));
            return one.given() ? field_text(one.field) : std::string();
          }};
}

Problems& Options::problems() {
  return state_->problems;
}

void Options::check(const std::vector<std::string>& groups, const std::vector<std::string>& given_only) {
  state_->finish(groups);
  if (!given_only.empty()) state_->finish(given_only);
  state_->fated.decide(state_->run_facts(), state_->problems);
  Problems found = state_->problems;
  state_->find_missing(groups, found);
  state_->validate(groups, found);
  if (!given_only.empty()) {
    Problems about_given;
    state_->validate(given_only, about_given);
    for (const Problem& problem : about_given.list())
      if (!problem.missing) found.add(problem);
  }
  if (groups.empty())
    for (const auto& rule : state_->rules) rule(found);
  state_->with_places(without_echoes(found)).throw_if_any();
  if (groups.empty()) tell_ignored();
}

void Options::tell_ignored() {
  std::vector<std::string> names;
  for (size_t& told = state_->told; told < state_->fated.ignored.size(); ++told)
    names.push_back(state_->fated.ignored[told].name);
  if (!names.empty()) log("ignored, no effect here: ", join(names, " "));
}

void Options::note_ignored(std::string words) {
  state_->fated.ignored.push_back({.name = std::move(words)});
}

namespace {
/// The words of an ignored option as set_field() wants them for a field of this name.
std::vector<std::string> words_for(const Field& field, const IgnoredOption& option, bool negated) {
  std::vector<std::string> words = option.words;
  if (words.empty() && is_flag(field)) words = {"true"};
  if (negated)
    for (std::string& word : words) word = negate_word(word);
  return words;
}
}  // namespace

std::set<std::string> Options::take_ignored(const std::vector<Field>& fields, Problems& problems) {
  OptionTable table;
  for (const Field& field : fields) table.add(field);
  std::set<std::string> taken;
  WordLists lists;
  std::erase_if(state_->fated.ignored, [&](const IgnoredOption& option) {
    const OptionMatch* match = table.find(option.where.name);
    if (!match) return false;
    const Field& field = fields[match->field];
    const std::vector<std::string> words = words_for(field, option, match->negated);
    const bool in_file = !option.where.place.empty();
    set_field(field, in_file ? words : lists.joined(field, words), option.where, problems);
    taken.insert(field.name);
    return true;
  });
  return taken;
}

std::optional<std::string> Options::parse(int argc, const char* const* argv) {
  auto text = read({argv + std::min(argc, 1), argv + argc});
  if (!text) check();
  return text;
}

const std::string& Options::source(const std::string& option) const {
  return state_->entry(option).source.text;
}

bool Options::given(const std::string& option) const {
  return state_->entry(option).given();
}

bool Options::on_command_line(const std::string& option) const {
  return state_->entry(option).given_by(Giver::kCommandLine);
}

bool Options::in_config_file(const std::string& option) const {
  return state_->entry(option).given_by(Giver::kFile);
}

std::vector<std::vector<std::string>> Options::given_words(const std::vector<std::string>& groups) const {
  std::vector<std::vector<std::string>> all;
  for (const Entry& entry : state_->entries) {
    if (!state_->in(entry, groups) || !given(entry.field.name)) continue;
    const std::string text = field_text(entry.field);
    if (field_value(entry.field).is_null()) continue;  // an unset value is not listed
    if (is_flag(entry.field)) {
      all.push_back({(text == "true" ? "--" : "--no-") + entry.field.name});
    } else if (takes_several(entry.field)) {
      all.push_back(*std::get<std::vector<std::string>*>(entry.field.slot));
      all.back().insert(all.back().begin(), "--" + entry.field.name);
    } else {
      all.push_back({"--" + entry.field.name, text});
    }
  }
  return all;
}

const std::string& Options::config_file() const {
  return state_->general.config;
}

Json Options::to_json() const {
  return megalith::to_json(state_->fields());
}

std::vector<std::string> Options::describe() const {
  constexpr size_t kValueColumn = 48;
  std::vector<std::string> lines;
  for (const Entry& entry : state_->entries) {
    if (state_->is_general(entry) || entry.field.unlisted) continue;
    const std::string name = json_key(entry.field.name), value = field_text(entry.field);
    const std::string dots(name.size() + 2 < kValueColumn ? kValueColumn - name.size() - 2 : 3, '.');
    const std::string from = entry.given_by(Giver::kDefault) ? "" : concat(" (", entry.source.text, ')');
    lines.push_back(concat("  ", name, ' ', dots, ' ', value.empty() ? "none" : value, from));
  }
  return lines;
}

AppDoc Options::State::document() const {
  AppDoc doc{.name = app,
             .purpose = purpose,
             .usage = app + " [options]",
             .epilog = epilog,
             .version = MEGALITH_VERSION,
             .groups = {},
             .environment = environment,
             .files = files,
             .fates = {}};
  for (const OptionFate& fate : table.fates.all())
    if (!table.find(std::string(fate.name))) doc.fates.push_back(fate);
  for (size_t g = 0; g < groups.size(); ++g) {
    GroupDoc group{.name = groups[g].name, .options = {}};
    for (const Entry& entry : entries) {
      if (entry.group != g || entry.field.unlisted) continue;
      group.options.push_back(megalith::document(entry.field, entry.default_value));
      if (!entry.field.positional) continue;
      const std::string& spelling = group.options.back().spelling;
      doc.usage += entry.field.required ? ' ' + spelling : " [" + spelling + ']';
    }
    if (!group.options.empty()) doc.groups.push_back(std::move(group));
  }
  // The group of General comes last.
  std::rotate(doc.groups.begin(), doc.groups.begin() + 1, doc.groups.end());
  return doc;
}

AppDoc Options::State::completion() const {
  AppDoc doc = document();
  for (GroupDoc& group : doc.groups)
    for (OptionDoc& option : group.options)
      if (const auto& known = entries[table.find(option.name)->field].field.known; known) {
        option.words = known();
        option.others = true;
      }
  return doc;
}

std::string Options::help(int width) const {
  return render_help(state_->document(), width);
}
std::string Options::markdown() const {
  return render_markdown(state_->document());
}
std::string Options::man() const {
  return render_man(state_->document());
}
std::string Options::bash_completion() const {
  return render_bash_completion(state_->completion());
}

}  // namespace megalith
