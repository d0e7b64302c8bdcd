#pragma once

#include <string>
#include <utility>
#include <vector>

#include "libcore/options/cli.h"
#include "libcore/options/fields.h"

namespace megalith {

/// One option of an app, as the documentation shows it.
struct OptionDoc {
  std::string name;  // name in the field's declaration
  /// Positional: set by words that are not options; several: accepts several words.
  bool positional = false, several = false;
  std::vector<std::string> flags;  // the spellings worth completing: "--load-optim", "--no-load-optim"
  std::string spelling;            // "--[no-]load-optim", "--num-layers N", "CHECKPOINT"
  std::string help, note;          // help: a sentence; note: "default 12; at least 1; also --x"
  std::string metavar;             // name of its value; empty for a flag
  std::vector<std::string> words;  // values to choose from; empty: any value
  bool others = false;             // whether other values than `words` are accepted
};
struct GroupDoc {
  std::string name;
  std::vector<OptionDoc> options;
};
struct AppDoc {
  std::string name, purpose, usage, epilog, version;  // name as typed: "megalith-merge"
  std::vector<GroupDoc> groups;
  std::vector<NoteDoc> environment = {}, files = {};
  std::vector<OptionFate> fates = {};  // fates of other tools' options; shown only in Markdown
};

/// Creates the documentation of a field. `default_value`: the field's initial value as text.
OptionDoc document(const Field&, const std::string& default_value);

std::string render_help(const AppDoc&, int width);
std::string render_markdown(const AppDoc&);
std::string render_man(const AppDoc&);

}  // namespace megalith
