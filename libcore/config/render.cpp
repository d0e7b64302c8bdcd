#include "libcore/config/render.h"

#include <algorithm>

#include "libcore/base/text.h"

namespace megalith {

namespace {
template <class... Ts>
bool holds(const Field& field) {
  return (std::holds_alternative<Ts*>(field.slot) || ...);
}

std::string metavar_of(const Field& field) {
  if (!field.metavar.empty()) return field.metavar;
  if (is_flag(field)) return {};
  if (holds<int, int64_t, std::optional<int>, std::optional<int64_t>>(field)) return "N";
  if (holds<double, std::optional<double>>(field)) return "X";
  return "TEXT";
}

std::vector<std::string> words_of(const Field& field) {
  if (const auto* e = std::get_if<EnumSlot>(&field.slot)) return e->names;
  for (const Constraint& c : field.constraints)
    if (!c.words.empty()) return c.words;
  return {};
}

std::string value_spelling(const OptionDoc& doc, const Field& field) {
  const std::string one = doc.words.empty() ? doc.metavar : "{" + join(doc.words, ",") + "}";
  return takes_several(field) ? one + " ..." : one;
}

/// What is said of the default; empty: nothing. A number that is 0 is one that was not given.
std::string default_note(const Field& field, const std::string& default_value) {
  if (!field.default_text.empty()) return "default: " + field.default_text;
  if (is_flag(field)) return holds<bool>(field) && default_value == "true" ? "default: on" : "";
  const bool absent = holds<int, int64_t, double>(field) && default_value == "0";
  return field.required || default_value.empty() || absent ? "" : "default: " + default_value;
}

std::string note_of(const Field& field, const OptionDoc& doc, const std::string& default_value) {
  std::vector<std::string> notes;
  if (field.required) notes.emplace_back("required");
  if (std::string note = default_note(field, default_value); !note.empty()) notes.push_back(std::move(note));
  if (doc.words.empty())
    for (const Constraint& c : field.constraints)
      if (!c.obvious) notes.push_back(c.text);
  std::vector<std::string> others;
  for (const auto* names : {&field.aliases, &field.opposites})
    for (const std::string& name : *names) others.push_back("--" + name);
  if (!others.empty()) notes.push_back("also " + join(others, ", "));
  return join(notes, "; ");
}
}  // namespace

OptionDoc document(const Field& field, const std::string& default_value) {
  OptionDoc doc;
  doc.help = field.help;
  doc.metavar = metavar_of(field);
  doc.words = words_of(field);
  if (field.positional) {
    doc.spelling = field.metavar.empty() ? field.name : field.metavar;
    if (takes_several(field)) doc.spelling += " ...";
  } else if (is_flag(field)) {
    const bool shows_no = !holds<bool>(field) || default_value == "true";
    doc.spelling = (shows_no ? "--[no-]" : "--") + field.name;
  } else {
    doc.spelling = "--" + field.name + ' ' + value_spelling(doc, field);
  }
  doc.note = note_of(field, doc, default_value);
  doc.flags.push_back("--" + field.name);
  for (const std::string& name : field.aliases) doc.flags.push_back("--" + name);
  if (doc.spelling.starts_with("--[no-]")) doc.flags.push_back("--no-" + field.name);
  for (const std::string& name : field.opposites) doc.flags.push_back("--" + name);
  return doc;
}

namespace {
/// `text` in lines of at most `width` bytes, broken at blanks.
std::vector<std::string> wrap(const std::string& text, size_t width) {
  std::vector<std::string> lines(1);
  for (const std::string& word : split(text, ' ')) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width) lines.emplace_back();
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
  }
  return lines;
}

std::string with_note(const OptionDoc& option) {
  return option.note.empty() ? option.help : option.help + " [" + option.note + "]";
}
}  // namespace

std::string render_help(const AppDoc& app, int width) {
  constexpr size_t kColumn = 38;
  const size_t text_width = static_cast<size_t>(std::max(width, 60)) - kColumn;
  std::string out = "usage: " + app.usage + "\n\n" + app.purpose + "\n";
  for (const GroupDoc& group : app.groups) {
    out += "\n" + group.name + ":\n";
    for (const OptionDoc& option : group.options) {
      std::string line = "  " + option.spelling;
      if (line.size() + 2 > kColumn) {
        out += line + '\n';
        line.clear();
      }
      for (const std::string& piece : wrap(with_note(option), text_width)) {
        line.resize(kColumn, ' ');
        out += line + piece + '\n';
        line.clear();
      }
    }
  }
  return app.epilog.empty() ? out : out + '\n' + app.epilog;
}

namespace {
/// Text of a cell of a Markdown table.
std::string cell(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '|' || c == '<' || c == '*') out += '\\';
    out += c;
  }
  return out;
}
}  // namespace

std::string render_markdown(const AppDoc& app) {
  std::string out = "## " + app.name + "\n\n" + app.purpose + "\n\n```\n" + app.usage + "\n```\n";
  for (const GroupDoc& group : app.groups) {
    out += "\n### " + app.name + ": " + group.name + "\n\n| option | meaning | notes |\n|---|---|---|\n";
    for (const OptionDoc& option : group.options) {
      std::string spelling = option.spelling;
      for (size_t at = 0; (at = spelling.find('|', at)) != std::string::npos; at += 2)
        spelling.insert(at, "\\");
      out += "| `" + spelling + "` | " + cell(option.help) + " | " + cell(option.note) + " |\n";
    }
  }
  return app.epilog.empty() ? out : out + "\n```\n" + app.epilog + "```\n";
}

namespace {
/// Text for troff: "-" is a hyphen there, and a line that begins with "." or "'" a request.
std::string troff(const std::string& text) {
  std::string out;
  bool line_start = true;
  for (char c : text) {
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    line_start = c == '\n';
  }
  return out;
}
}  // namespace

std::string render_man(const AppDoc& app) {
  std::string title = app.name;
  std::transform(title.begin(), title.end(), title.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  std::string out = ".TH " + troff(title) + " 1 \"\" \"megalith " + app.version + "\" \"Megalith\"\n";
  out += ".SH NAME\n" + troff(app.name) + " \\- " + troff(app.purpose) + "\n";
  out += ".SH SYNOPSIS\n" + troff(app.usage) + "\n.SH OPTIONS\n";
  for (const GroupDoc& group : app.groups) {
    out += ".SS " + troff(group.name) + "\n";
    for (const OptionDoc& option : group.options)
      out += ".TP\n.B " + troff(option.spelling) + "\n" + troff(with_note(option)) + "\n";
  }
  if (!app.epilog.empty()) out += ".SH EXAMPLES\n.nf\n" + troff(app.epilog) + ".fi\n";
  out +=
      ".SH EXIT STATUS\n"
      "0 success, 64 wrong usage, 65 bad input data, 66 missing input, 69 no device, 70 a bug in the "
      "program,\n"
      "74 reading or writing failed, 75 a peer failed: try again.\n";
  return out;
}

namespace {
/// One arm of the completion's `case`: after one of these flags, these words.
std::string completion_arm(const OptionDoc& option) {
  std::vector<std::string> takes;
  for (const std::string& flag : option.flags)
    if (!option.metavar.empty()) takes.push_back(option_key(flag));
  if (takes.empty()) return {};
  std::string action = "return";
  if (!option.words.empty())
    action = "COMPREPLY=($(compgen -W '" + join(option.words, " ") + "' -- \"$cur\")); return";
  else if (option.metavar == "DIR")
    action = "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- \"$cur\")); return";
  else if (option.metavar != "N" && option.metavar != "X")
    action = "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\")); return";
  return "    " + join(takes, "|") + ") " + action + " ;;\n";
}
}  // namespace

std::string render_bash_completion(const AppDoc& app) {
  std::string arms, flags;
  for (const GroupDoc& group : app.groups)
    for (const OptionDoc& option : group.options) {
      arms += completion_arm(option);
      for (const std::string& flag : option.flags) flags += (flags.empty() ? "" : " ") + option_key(flag);
    }
  const std::string function = "_" + json_key(app.name);
  return "# bash completion for " + app.name + "; source it, or install it in bash-completion's folder\n" +
         function +
         "() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  COMPREPLY=()\n"
         "  case ${prev//_/-} in\n" +
         arms +
         "  esac\n"
         "  if [[ $cur == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W '" +
         flags +
         "' -- \"${cur//_/-}\"))\n"
         "  else\n"
         "    compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\"))\n"
         "  fi\n"
         "}\n"
         "complete -F " +
         function + ' ' + app.name + "\n";
}

}  // namespace megalith
