#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <unistd.h>

#include "apps/siblings.h"
#include "libcore/base/error.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/io/streams/standard_streams.h"
#include "libcore/options/version_text.h"

/// `megalith APP …` runs megalith-APP, which is next to this program, as git runs its commands.

namespace megalith {
namespace {

namespace fs = std::filesystem;

std::string read_line(FILE* file) {
  char buffer[512];
  return file && std::fgets(buffer, sizeof buffer, file) ? std::string(trim(buffer)) : std::string();
}

std::string help(const fs::path& folder) {
  const std::vector<std::string> apps = find_apps(folder);
  std::vector<Pipe> answers;  // all apps are started first, so that they run side by side
  for (const std::string& app : apps) answers.push_back(ask_app(app_path(folder, app), "--help-purpose"));
  std::string out = "usage: megalith APP [options]\n\n";
  const size_t columns = columns_of(STDOUT_FILENO);
  const std::string indent(14, ' ');
  for (size_t i = 0; i < apps.size(); ++i) {
    std::string line = "  " + apps[i];
    line.resize(std::max(line.size() + 1, indent.size()), ' ');
    out += wrapped(line + read_line(answers[i].get()), columns, indent) + '\n';
  }
  out += wrapped("\nmegalith APP --help lists the options of an app; megalith-APP is the same program.",
                 columns);
  return out + '\n';
}

/// A script that completes the apps' names. After the name of an app it calls that app's completion, which
/// the app itself prints.
std::string bash_completion(const fs::path& folder) {
  const std::string apps = join(find_apps(folder), " ");
  return concat(
      "# bash completion for megalith; source it, or install it in bash-completion's folder\n"
      "_megalith() {\n"
      "  local apps='",
      apps,
      "'\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W \"$apps help --help --version\" -- \"${COMP_WORDS[1]}\"))\n"
      "    return\n"
      "  fi\n"
      "  if [[ ${COMP_WORDS[1]} == help ]]; then\n"
      "    ((COMP_CWORD == 2)) && COMPREPLY=($(compgen -W \"$apps\" -- \"${COMP_WORDS[2]}\"))\n"
      "    return\n"
      "  fi\n"
      "  local complete_app=_megalith_${COMP_WORDS[1]}\n"
      "  declare -F \"$complete_app\" >/dev/null ||\n"
      "    eval \"$(\"${COMP_WORDS[0]}\" \"${COMP_WORDS[1]}\" --help-bash-completion 2>/dev/null)\"\n"
      "  declare -F \"$complete_app\" >/dev/null || return\n"
      "  COMP_WORDS=(\"megalith-${COMP_WORDS[1]}\" \"${COMP_WORDS[@]:2}\")\n"
      "  COMP_CWORD=$((COMP_CWORD - 1))\n"
      "  \"$complete_app\"\n"
      "}\n"
      "complete -F _megalith megalith\n");
}

/// A completion script for zsh, which itself finds the app's completion function by the name of the app's
/// command.
std::string zsh_completion(const fs::path& folder) {
  const std::string apps = join(find_apps(folder), " ");
  return concat(
      "#compdef megalith\n# Source it after compinit, or install it in a folder of $fpath.\n"
      "_megalith() {\n"
      "  if (( CURRENT == 2 )); then\n"
      "    compadd -- ",
      apps,
      " help --help --version\n"
      "  elif [[ ${words[2]} == help ]]; then\n"
      "    (( CURRENT == 3 )) && compadd -- ",
      apps,
      "\n"
      "  else\n"
      "    words=(\"megalith-${words[2]}\" \"${(@)words[3,-1]}\")\n"
      "    (( CURRENT-- ))\n"
      "    _normal\n"
      "  fi\n"
      "}\n"
      "if [ \"${funcstack[1]}\" = _megalith ]; then _megalith \"$@\"; else compdef _megalith megalith; fi\n");
}

std::string fish_completion(const fs::path& folder) {
  const std::string apps = join(find_apps(folder), " ");
  return concat(
      "# fish completion for megalith; put it into a folder of $fish_complete_path\n"
      "function __megalith_complete_app\n"
      "  set -l words (commandline -opc) (commandline -ct)\n"
      "  complete -C \"megalith-\"(string join ' ' -- (string escape -- $words[2..-2])\" $words[-1]\")\n"
      "end\n"
      "complete -c megalith -n __fish_use_subcommand -x -a '",
      apps,
      " help'\n"
      "complete -c megalith -n __fish_use_subcommand -l help -l version\n"
      "complete -c megalith -n '__fish_seen_subcommand_from help' -x -a '",
      apps,
      "'\n"
      "complete -c megalith -n 'not __fish_use_subcommand; and not __fish_seen_subcommand_from help' -x "
      "-a '(__megalith_complete_app)'\n");
}

std::string man(const fs::path& folder) {
  std::string out =
      ".TH MEGALITH 1 \"\" \"megalith " MEGALITH_VERSION
      "\" \"Megalith\"\n"
      ".SH NAME\nmegalith \\- train and run transformer language models\n"
      ".SH SYNOPSIS\n.B megalith\nAPP [options]\n"
      ".SH DESCRIPTION\nRuns one of the programs below with the options that follow. Each has "
      "a manual page of its own.\n"
      ".SH EXAMPLES\n.nf\nmegalith tokenizer train \\-\\-input corpus.jsonl \\-\\-output tokenizer\n"
      "megalith help pretrain\n.fi\n"
      ".SH EXIT STATUS\nThe exit status of the program; 64 if no program has this name.\n"
      ".SH SEE ALSO\n";
  for (const std::string& app : find_apps(folder)) out += ".BR megalith\\-" + app + " (1)\n";
  return out;
}

[[noreturn]] void run_app_beside(const fs::path& folder, const std::string& app, char** argv) {
  const std::vector<std::string> apps = find_apps(folder);
  if (std::find(apps.begin(), apps.end(), app) == apps.end()) {
    if (app == "serve")
      fail(ErrorKind::kUsage,
           "serve is not supported; megalith generate answers many prompts with one start (--prompts-file "
           "FILE)");
    const auto near = nearest(app, apps);
    fail(ErrorKind::kUsage, "no app is called ", quote(app),
         near ? "; did you mean " + quote(*near) + "?" : "");
  }
  const std::string program = app_path(folder, app);
  argv[0] = const_cast<char*>(program.c_str());  // execv() does not change the string
  ::execv(program.c_str(), argv);
  fail(ErrorKind::kIo, program, ": ", std::strerror(errno));
}

/// The output for an option of this program itself; nothing if an app is to be run.
std::optional<std::string> answer(const fs::path& folder, const std::string& word, int words) {
  if (word == "--help" || word == "-h" || (word == "help" && words == 1)) return help(folder);
  if (word == "--version") return version_text("megalith");
  if (word == "--help-bash-completion") return bash_completion(folder);
  if (word == "--help-zsh-completion") return zsh_completion(folder);
  if (word == "--help-fish-completion") return fish_completion(folder);
  if (word == "--help-man") return man(folder);
  return std::nullopt;
}

int run(int argc, char** argv) {
  open_standard_descriptors();
  const fs::path folder = own_folder();
  const std::string word = argc > 1 ? argv[1] : "--help";
  if (const auto text = answer(folder, word, argc - 1)) {
    std::signal(SIGPIPE, SIG_IGN);  // a write without a reader then fails, which is reported as ReaderGone
    write_stdout(*text);
    finish_stdout();
    return 0;
  }
  if (word != "help") run_app_beside(folder, word, argv + 1);
  std::string help = "--help";
  char* arguments[] = {argv[0], help.data(), nullptr};
  run_app_beside(folder, argv[2], arguments);
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  try {
    return megalith::run(argc, argv);
  } catch (const megalith::ReaderGone&) {
    return 0;
  } catch (const megalith::Error& error) {
    const bool usage = error.kind() == megalith::ErrorKind::kUsage;
    std::fprintf(stderr, "megalith: error: %s%s\n", error.what(), usage ? "\nsee --help" : "");
    return megalith::exit_code(error.kind());
  }
}
