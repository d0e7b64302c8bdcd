#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libcore/base/text.h"
#include "libcore/dialects/megatron/fates.h"
#include "libcore/options/fields.h"

namespace megalith {

/// The table of arguments in a Megatron-LM log: names with "_", values as Python prints them ("True", "None",
/// "['a2a']", "torch.float32"). Keeps references to the constructor's arguments, which must outlive it.
class LogArguments {
 public:
  LogArguments(const std::map<std::string, std::string>& arguments, const std::string& path)
      : arguments_(arguments), path_(path) {}

  /// The printed value; empty when the name is missing.
  std::string word(const std::string& name) const;
  /// Whether the log has the argument and its value is not None.
  bool has(const std::string& name) const;
  /// The value as an integer from 0 to 2^30; `otherwise` when the argument has no value. kData when the value
  /// is not such an integer.
  int number(const char* name, int otherwise) const;
  double share(const char* name, double otherwise) const;  // a number from 0 to 1
  bool flag(const char* name, bool otherwise) const;
  template <class E>
  E choice(const char* name, E otherwise) const {
    if (!has(name)) return otherwise;
    std::string known;
    for (const auto& [word_of, value] : enum_names(otherwise)) {
      if (word(name) == word_of) return value;
      known += concat(known.empty() ? "" : ", ", word_of);
    }
    refuse(name, known);
  }
  /// The value as words of a command line: "['a', 'b']" gives two words, "True" gives true.
  std::vector<std::string> words(const std::string& name) const;

  const std::map<std::string, std::string>& all() const { return arguments_; }
  const std::string& path() const { return path_; }
  /// Throws kUsage: the planner cannot price the value of this argument.
  [[noreturn]] void unpriced(const std::string& name) const;

 private:
  [[noreturn]] void refuse(const char* name, const std::string& wanted) const;  // throws kData

  const std::map<std::string, std::string>& arguments_;
  const std::string& path_;
};

/// Throws kUsage (unpriced()) if an argument that changes memory or time has a value that the planner cannot
/// price.
void refuse_unpriced(const LogArguments&, const RunKind&);

}  // namespace megalith
