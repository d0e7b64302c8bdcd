#pragma once

#include <string>
#include <utility>
#include <vector>

#include "libcore/options/cli.h"
#include "libcore/options/fields.h"

namespace megalith {

/// One option of an app, as the documentation shows it.
struct OptionDoc {
  std::string name;                          // as declared
  bool positional = false, several = false;  // takes words that are not options; takes several
  std::vector<std::string> flags;  // the spellings worth completing: "--load-optim", "--no-load-optim"
  std::string spelling;            // "--[no-]load-optim", "--num-layers N", "CHECKPOINT"
  std::string help, note;          // a sentence; "default 12; at least 1; also --x"
  std::string metavar;             // name of its value; empty for a flag
  std::vector<std::string> words;  // values to offer; empty: any
  bool others = false;             // values other than `words` are accepted, too
};
struct GroupDoc {
  std::string name;
  std::vector<OptionDoc> options;
};
struct AppDoc {
  std::string name, purpose, usage, epilog, version;  // name as typed: "megalith-merge"
  std::vector<GroupDoc> groups;
  std::vector<NoteDoc> environment = {}, files = {};
  std::vector<OptionFate> fates = {};  // of other tools' options; only in Markdown
};

/// `default_value`: the text of the value that the field's declaration gives it.
OptionDoc document(const Field&, const std::string& default_value);

std::string render_help(const AppDoc&, int width);
std::string render_markdown(const AppDoc&);
std::string render_man(const AppDoc&);

}  // namespace megalith
