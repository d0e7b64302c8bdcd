#include "libcore/options/completion.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/shell_word.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

/// The kinds of values that a shell can offer.
enum class Offer { kNothing, kWords, kFolders, kFiles, kDatasets };

Offer offer_of(const OptionDoc& option) {
  if (!option.words.empty()) return Offer::kWords;
  if (option.metavar == "DIR") return Offer::kFolders;
  if (option.metavar == "PREFIX") return Offer::kDatasets;
  return option.metavar == "N" || option.metavar == "X" ? Offer::kNothing : Offer::kFiles;
}

std::vector<const OptionDoc*> options_of(const AppDoc& app, bool positional) {
  std::vector<const OptionDoc*> list;
  for (const GroupDoc& group : app.groups)
    for (const OptionDoc& option : group.options)
      if (option.positional == positional) list.push_back(&option);
  return list;
}

/// What the first argument may be.
struct Commands {
  std::vector<std::string> words;  // such as inspect and verify; empty: not a command but a file
  bool or_file = false;            // whether the first argument may also be a file
};

Commands commands_of(const AppDoc& app) {
  const std::vector<const OptionDoc*> arguments = options_of(app, true);
  return arguments.empty() ? Commands() : Commands{arguments.front()->words, arguments.front()->others};
}

/// `text` with a backslash before each of `special`.
std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string summary(const OptionDoc& option) {
  constexpr size_t kColumns = 70;
  return std::string(fitting(option.help, kColumns));
}

// Bash.

constexpr std::string_view kBashFiles =
    "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\"))";

/// Files without the endings of a dataset's two, each once.
constexpr std::string_view kBashPrefixes =
    "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\" | "
    "sed -e 's/\\.bin$//' -e 's/\\.idx$//' | sort -u))";

std::string bash_offer(const OptionDoc& option) {
  switch (offer_of(option)) {
    case Offer::kWords:
      return "COMPREPLY=($(compgen -W '" + join(option.words, " ") + "' -- \"$cur\")); return";
    case Offer::kFolders:
      return "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- \"$cur\")); return";
    case Offer::kFiles:
      return concat(kBashFiles, "; return");
    case Offer::kDatasets:
      return concat(kBashPrefixes, "; return");
    case Offer::kNothing:
      break;
  }
  return "return";
}

/// One branch of the script's `case`: what to offer after one of these flags.
std::string bash_arm(const OptionDoc& option) {
  if (option.metavar.empty()) return {};
  std::vector<std::string> flags;
  for (const std::string& flag : option.flags) flags.push_back(option_key(flag));
  return "    " + join(flags, "|") + ") " + bash_offer(option) + " ;;\n";
}

/// Offers the commands until one of them is on the line.
std::string bash_commands(const Commands& commands) {
  if (commands.words.empty()) return {};
  return concat(
      "  local word command=\n  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n    case $word in ",
      join(commands.words, "|"), ") command=$word ;; esac\n  done\n",
      "  if [[ $cur != -* && ! $command ]]; then\n", commands.or_file ? concat("    ", kBashFiles, '\n') : "",
      "    COMPREPLY+=($(compgen -W '", join(commands.words, " "), "' -- \"$cur\")); return\n  fi\n");
}

// zsh.

std::string zsh_prefixes(const AppDoc& app) {
  return "_" + app.name + "_prefixes";
}

/// A function that offers folders, and datasets without the ending of their two files; empty if no option
/// takes a dataset.
std::string zsh_prefixes_function(const AppDoc& app) {
  const std::vector<const OptionDoc*> options = options_of(app, false);
  const auto takes_dataset = [](const OptionDoc* option) { return offer_of(*option) == Offer::kDatasets; };
  if (std::ranges::none_of(options, takes_dataset)) return {};
  return concat(zsh_prefixes(app),
                "() {\n"
                "  local -a found\n"
                "  found=(${~PREFIX}*.(bin|idx)(N))\n"
                "  (( $#found )) && compadd -f -- ${(u)found%.*}\n"
                "  _files -/\n"
                "}\n");
}

std::string zsh_action(const AppDoc& app, const OptionDoc& option) {
  switch (offer_of(option)) {
    case Offer::kWords:
      return "(" + join(option.words, " ") + ")";
    case Offer::kFolders:
      return "_files -/";
    case Offer::kFiles:
      return "_files";
    case Offer::kDatasets:
      return zsh_prefixes(app);
    case Offer::kNothing:
      break;
  }
  return " ";
}

std::string zsh_option(const AppDoc& app, const OptionDoc& option) {
  std::string out;
  for (const std::string& flag : option.flags) {
    std::string spec = concat(option.several ? "*" : "", option_key(flag), option.metavar.empty() ? "" : "=",
                              '[', escaped(summary(option), "[]:\\"), ']');
    if (!option.metavar.empty())
      spec += concat(':', escaped(option.metavar, ":"), ':', zsh_action(app, option));
    out += " \\\n    " + single_quoted(spec);
  }
  return out;
}

// fish.

std::string fish_quoted(const std::string& text) {
  return "'" + escaped(text, "'\\") + "'";
}

/// Files without the endings of a dataset's two, each once. Fish writes a description behind a tab.
constexpr char kFishPrefixes[] =
    "(__fish_complete_path (commandline -ct | string replace -r -- \"^--[^=]*=\" \"\") | "
    "string replace -r \"\\.(bin|idx)(\\t.*)?\\$\" \"\" | sort -u)";

std::string fish_value(const OptionDoc& option) {
  if (option.metavar.empty()) return {};
  switch (offer_of(option)) {
    case Offer::kWords:
      return " -x -a " + fish_quoted(join(option.words, " "));
    case Offer::kFolders:
      return " -x -a '(__fish_complete_directories)'";
    case Offer::kFiles:
      return " -r -F";
    case Offer::kDatasets:
      return concat(" -x -a ", fish_quoted(kFishPrefixes));
    case Offer::kNothing:
      break;
  }
  return " -x";
}

}  // namespace

std::string render_bash_completion(const AppDoc& app) {
  std::string arms, flags;
  for (const GroupDoc& group : app.groups)
    for (const OptionDoc& option : group.options) {
      if (option.positional) continue;
      arms += bash_arm(option);
      for (const std::string& flag : option.flags) flags += (flags.empty() ? "" : " ") + option_key(flag);
    }
  const std::string function = "_" + json_key(app.name);
  return concat("# bash completion for ", app.name,
                "; source it, or install it in bash-completion's folder\n", function,
                "() {\n"
                "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                "  COMPREPLY=()\n"
                "  [[ $cur == = ]] && cur=\n"  // "--gpu=h" is three words to bash
                "  [[ $prev == = && COMP_CWORD -gt 1 ]] && prev=${COMP_WORDS[COMP_CWORD-2]}\n"
                "  case ${prev//_/-} in\n",
                arms, "  esac\n", bash_commands(commands_of(app)),
                "  if [[ $cur == -* ]]; then\n"
                "    COMPREPLY=($(compgen -W '",
                flags,
                "' -- \"${cur//_/-}\"))\n"
                "  else\n"
                "    ",
                kBashFiles,
                "\n  fi\n"
                "}\n"
                "complete -F ",
                function, ' ', app.name, "\n");
}

std::string render_zsh_completion(const AppDoc& app) {
  std::string specs;
  for (const OptionDoc* option : options_of(app, false)) specs += zsh_option(app, *option);
  if (const auto [words, or_file] = commands_of(app); !words.empty())
    specs +=
        " \\\n    " + single_quoted("1:command:" + (or_file ? "{compadd -- " + join(words, " ") + "; _files}"
                                                            : "(" + join(words, " ") + ")"));
  specs += " \\\n    '*:file:_files'";
  const std::string function = "_" + app.name;
  return concat("#compdef ", app.name, "\n# Source it after compinit, or install it in a folder of $fpath.\n",
                zsh_prefixes_function(app), function, "() {\n  _arguments", specs,
                "\n}\nif [ \"${funcstack[1]}\" = ", function, " ]; then ", function, " \"$@\"; else compdef ",
                function, ' ', app.name, "; fi\n");
}

std::string render_fish_completion(const AppDoc& app) {
  std::string out =
      concat("# fish completion for ", app.name, "; put it into a folder of $fish_complete_path\n");
  for (const OptionDoc* option : options_of(app, false))
    for (const std::string& flag : option->flags)
      out += concat("complete -c ", app.name, " -l ", option_key(flag).substr(2), fish_value(*option), " -d ",
                    fish_quoted(summary(*option)), '\n');
  if (const Commands commands = commands_of(app); !commands.words.empty()) {
    const std::string words = join(commands.words, " ");
    out += concat("complete -c ", app.name, commands.or_file ? "" : " -f",
                  " -n 'not __fish_seen_subcommand_from ", words, "' -a '", words, "'\n");
  }
  return out;
}

}  // namespace megalith
