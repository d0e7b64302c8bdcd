#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/base/error.h"

namespace megalith {

/// An option that a problem names. Its text shows the option as "--NAME".
struct Opt {
  std::string_view name;
};

/// The text of a problem, with a list of the options that it names, so that no code has to search the text
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

  /// Appends a text, a number, an Opt or another Phrase.
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

/// One problem of a configuration: the sentence for the user, and the parts of it that code may need.
struct Problem {
  std::string text;         // a whole sentence; if `wanted` is given, only its beginning: "--lr"
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

/// The problems of a configuration, collected so that the user sees all of them at once.
class Problems {
 public:
  /// Adds a problem. The text says which option, what its value is, what was wanted and what to do, without a
  /// full stop.
  template <class... Parts>
  void add(const Parts&... parts) {
    append({}, Phrase(parts...));
  }
  /// Adds a problem about a line of a file. The text begins with `place`.
  template <class... Parts>
  void add_at(const std::string& place, const Parts&... parts) {
    append(place, Phrase(place, ": ", parts...));
  }
  /// Adds the problem that a required option was not given: "--NAME is missing", followed by `parts`.
  template <class... Parts>
  void missing(const Opt& option, const Parts&... parts) {
    append({}, Phrase(option, " is missing", parts...));
    list_.back().option = option.name;
    list_.back().missing = true;
  }
  /// Adds the problem that a value is not what was wanted: "--NAME FOUND: wanted WANTED".
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
  /// All messages in one text, separated by `between`.
  std::string text(std::string_view between = "\n") const;
  /// If there are problems, throws one Error that lists them, one per line, all but the first indented.
  void throw_if_any(ErrorKind kind = ErrorKind::kUsage) const;

 private:
  void append(const std::string& place, const Phrase& phrase);

  std::vector<Problem> list_;
};

}  // namespace megalith
