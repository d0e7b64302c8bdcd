#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/base/error.h"

namespace megalith {

/// An option that a complaint names. The text has it as "--NAME".
struct Opt {
  std::string_view name;
};

/// The text of a complaint, and a list of the options that it names, so that nobody has to search the text
/// for them.
class Phrase {
 public:
  template <class... Parts>
  explicit Phrase(const Parts&... parts) {
    (append(parts), ...);
  }
  const std::string& text() const { return text_; }
  const std::vector<std::string>& options() const { return options_; }
  bool empty() const { return text_.empty(); }

  /// Takes a text, a number, an Opt or another Phrase.
  template <class Part>
  void append(const Part& part) {
    concat_part(text_, part);
  }
  void append(const Opt& option);
  void append(const Phrase& phrase);

 private:
  std::string text_;
  std::vector<std::string> options_;
};

/// One complaint about a configuration: its sentence, and the parts of it that code may need.
struct Problem {
  std::string text;         // a whole sentence for the user; if `wanted` is given, its beginning: "--lr"
  std::string option = {};  // the wrong or missing option, "num-layers"; empty: not about one option
  std::string found = {};   // the refused value of `option`; empty: no value was refused
  std::string wanted = {};  // what `found` has to be, for the sentence "TEXT FOUND: wanted ..."
  std::string place = {};   // the line of a file, "run.yaml:3"; empty: not about a file
  std::string note = {};    // follows the text in parentheses
  bool missing = false;     // whether `option` was not given
  std::vector<std::string> options = {};  // all options that the text names

  /// The sentence and the note.
  std::string message() const;
};

/// Complaints about a configuration, collected so that the user sees all of them at once.
class Problems {
 public:
  /// One complaint: which option, what it holds, what was wanted, what to do. No full stop.
  template <class... Parts>
  void add(const Parts&... parts) {
    append({}, Phrase(parts...));
  }
  /// A complaint about a line of a file; the text begins with that place.
  template <class... Parts>
  void add_at(const std::string& place, const Parts&... parts) {
    append(place, Phrase(place, ": ", parts...));
  }
  /// A required option that was not given: "--NAME is missing", followed by `parts`.
  template <class... Parts>
  void missing(const Opt& option, const Parts&... parts) {
    append({}, Phrase(option, " is missing", parts...));
    list_.back().option = option.name;
    list_.back().missing = true;
  }
  /// A value that is not what was wanted: "--NAME FOUND: wanted WANTED".
  template <class Found>
  void refuse(const Opt& option, const Found& found, const std::string& wanted) {
    append({}, Phrase(option));
    list_.back().option = option.name;
    list_.back().found = concat(found);
    list_.back().wanted = wanted;
  }
  void add(Problem problem) { list_.push_back(std::move(problem)); }

  bool empty() const { return list_.empty(); }
  const std::vector<Problem>& list() const { return list_; }
  /// All messages, with `between` between them.
  std::string text(std::string_view between = "\n") const;
  /// Throws one Error with all complaints, one per line, if there are any.
  void throw_if_any(ErrorKind kind = ErrorKind::kUsage) const;

 private:
  void append(const std::string& place, const Phrase& phrase);

  std::vector<Problem> list_;
};

}  // namespace megalith
