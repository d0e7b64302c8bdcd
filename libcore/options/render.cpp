#include "libcore/options/render.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/terminal.h"
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

/// The note about a field's default; empty if none is shown. A number with the default 0 gets none, because 0
/// means that it was not given.
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
    for (const std::string& name : *names) others.push_back(name.starts_with('-') ? name : "--" + name);
  if (!others.empty()) notes.push_back("also " + join(others, ", "));
  return join(notes, "; ");
}
}  // namespace

OptionDoc document(const Field& field, const std::string& default_value) {
  OptionDoc doc;
  doc.name = field.name;
  doc.positional = field.positional;
  doc.several = takes_several(field);
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
  for (const std::string& name : field.aliases)
    if (!name.starts_with('-')) doc.flags.push_back("--" + name);
  if (doc.spelling.starts_with("--[no-]")) doc.flags.push_back("--no-" + field.name);
  for (const std::string& name : field.opposites) doc.flags.push_back("--" + name);
  return doc;
}

namespace {
/// Indents the lines after the first by `indent`.
std::string below(const std::string& text, const std::string& indent) {
  return join(split(text, '\n'), "\n" + indent);
}

/// Breaks a spelling into lines if it is longer than a line. Breaks only after commas between an
/// enumeration's words.
std::string broken_at_commas(const std::string& spelling, size_t columns) {
  std::string out, line;
  for (const std::string& part : split(spelling, ',')) {
    if (!line.empty() && line.size() + part.size() + 2 > columns) {
      out += line + ",\n";
      line = "      ";
    } else if (!line.empty()) {
      line += ',';
    }
    line += part;
  }
  return out + line;
}

std::string with_note(const OptionDoc& option) {
  return option.note.empty() ? option.help : option.help + " [" + option.note + "]";
}
}  // namespace

std::string render_help(const AppDoc& app, int width) {
  constexpr size_t kColumn = 38;
  const size_t columns = static_cast<size_t>(std::max(width, 60));
  const std::string indent(kColumn, ' ');
  std::string out =
      wrapped("usage: " + app.usage, columns, "         ") + "\n\n" + wrapped(app.purpose, columns) + "\n";
  for (const GroupDoc& group : app.groups) {
    out += "\n" + group.name + ":\n";
    for (const OptionDoc& option : group.options) {
      std::string line = "  " + option.spelling;
      if (line.size() + 2 > kColumn) {
        out += broken_at_commas(line, columns) + '\n';
        line.clear();
      }
      line.resize(kColumn, ' ');
      out += line + below(wrapped(with_note(option), columns - kColumn), indent) + '\n';
    }
  }
  return app.epilog.empty() ? out : out + '\n' + app.epilog;
}

namespace {
/// Escapes text for a cell of a Markdown table.
std::string cell(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '|' || c == '<' || c == '*') out += '\\';
    out += c;
  }
  return out;
}
}  // namespace

namespace {
std::string spelling(const OptionFate& fate) {
  const std::string head = fate.values == OptionFate::kMaybeOne ? "`--[no-]" : "`--";
  std::string unless;
  if (!fate.plain.empty()) unless = concat(" unless `", join(split(fate.plain, '|'), "`, `"), '`');
  if (!fate.repeats.empty()) unless += concat(" unless the value of `--", fate.repeats, '`');
  if (!fate.only.empty()) unless += concat(" (with ", fate.only, ')');
  return concat(head, fate.name, '`', unless);
}

/// Other tools' options that are ignored: one a line, in the table's order.
std::string ignored_text(const std::vector<OptionFate>& fates) {
  std::string rows;
  for (const OptionFate& fate : fates)
    if (fate.remedy.empty()) rows += concat("| ", spelling(fate), " | ", fate.tool, " |\n");
  return rows.empty()
             ? rows
             : "\nThe log names ignored options that are given.\n\n| ignored | tool |\n|---|---|\n" + rows;
}

/// Other tools' options that are refused: one line for each remedy, in the order in which remedies first
/// appear.
std::string refused_text(const std::vector<OptionFate>& fates) {
  std::vector<std::pair<std::string_view, std::string>> remedies;
  for (const OptionFate& fate : fates) {
    if (fate.remedy.empty()) continue;
    auto row = std::find_if(remedies.begin(), remedies.end(),
                            [&](const auto& one) { return one.first == fate.remedy; });
    if (row == remedies.end()) row = remedies.insert(row, {fate.remedy, {}});
    row->second += (row->second.empty() ? "" : ", ") + spelling(fate);
  }
  std::string rows;
  for (const auto& [remedy, names] : remedies)
    rows += concat("| ", names, " | ", cell(std::string(remedy)), " |\n");
  return rows.empty() ? rows : "\n| refused | instead |\n|---|---|\n" + rows;
}

std::string fates_text(const AppDoc& app) {
  if (app.fates.empty()) return {};
  return "\n### " + app.name + ": options of other tools\n" + ignored_text(app.fates) +
         refused_text(app.fates);
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
  out += fates_text(app);
  return app.epilog.empty() ? out : out + "\n```\n" + app.epilog + "```\n";
}

namespace {
/// Escapes text for troff, in which "-" is a hyphen and a line that begins with "." or "'" is a request. A
/// list of choices, which may be longer than a line, can be broken after each comma.
std::string troff(const std::string& text) {
  std::string out;
  bool line_start = true;
  for (const char c : text) {
    if (!out.empty() && out.back() == ',' && c != ' ' && c != '\n') out += "\\:";
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

namespace {
/// The exit codes that run_app() and the signal handlers set.
const std::vector<NoteDoc> kExitCodes = {
    {"0", "Success, even if the reader of standard output has gone."},
    {"64", "An option is unknown or missing, or options contradict each other or the input."},
    {"65", "An input file holds invalid data."},
    {"66", "An input file does not exist."},
    {"69", "A device or its library is missing or does not respond."},
    {"70", "A bug in the program."},
    {"71", "The system refuses memory, a thread or a stack."},
    {"74", "Reading or writing failed."},
    {"75",
     "Try again: a signal stopped training, whose state is saved first where --save is given, a peer failed, "
     "or another process holds the output."},
    {"130",
     "Ctrl-C stopped the program at once; in training, the second Ctrl-C did. Another signal: 128 plus its "
     "number."}};

std::string notes(const char* title, const std::vector<NoteDoc>& list) {
  if (list.empty()) return {};
  std::string out = concat(".SH ", title, "\n");
  for (const auto& [name, text] : list) out += ".TP\n.B " + troff(name) + "\n" + troff(text) + "\n";
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
  out += notes("ENVIRONMENT", app.environment) + notes("FILES", app.files);
  if (!app.epilog.empty()) out += ".SH EXAMPLES\n.nf\n" + troff(app.epilog) + ".fi\n";
  return out + notes("EXIT STATUS", kExitCodes);
}

}  // namespace megalith
