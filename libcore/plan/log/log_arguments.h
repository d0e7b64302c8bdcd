#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libcore/base/text.h"
#include "libcore/options/fields.h"

namespace megalith {

/// The table of arguments of a Megatron-LM log: names with "_", values as Python prints them ("True", "None",
/// "['a2a']", "torch.float32"). Refers to what it was made of.
class LogArguments {
 public:
  LogArguments(const std::map<std::string, std::string>& arguments, const std::string& path)
      : arguments_(arguments), path_(path) {}

  /// What was printed; empty when the name is not there.
  std::string word(const std::string& name) const;
  /// Whether it is there and not None.
  bool has(const std::string& name) const;
  /// From 0 to 2^30, kData for something else; `otherwise` when it has no value.
  int number(const char* name, int otherwise) const;
  double share(const char* name, double otherwise) const;  // from 0 to 1
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
  /// As words of a command line: "['a', 'b']" is two, "True" is true.
  std::vector<std::string> words(const std::string& name) const;

  const std::map<std::string, std::string>& all() const { return arguments_; }
  const std::string& path() const { return path_; }
  /// kUsage: what is in the log is not priced.
  [[noreturn]] void unpriced(const std::string& name) const;

 private:
  [[noreturn]] void refuse(const char* name, const std::string& wanted) const;  // kData

  const std::map<std::string, std::string>& arguments_;
  const std::string& path_;
};

/// What of a logged run decides whether some arguments mean anything.
struct LoggedKind {
  bool context = false, experts = false, narrow = false;  // ranks share sequences; products below 16 bits
};

/// Throws for an argument that moves memory or time and whose value is not priced (unpriced()).
void refuse_unpriced(const LogArguments&, const LoggedKind&);

}  // namespace megalith
