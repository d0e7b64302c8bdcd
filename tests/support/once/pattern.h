#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace megalith::test {

/// A regular expression (ECMAScript's). Only pattern.cpp includes <regex>, which takes two seconds to
/// compile.
class Pattern {
 public:
  Pattern(const char* expression);         // NOLINT(google-explicit-constructor): as an argument
  Pattern(const std::string& expression);  // NOLINT(google-explicit-constructor)
  static Pattern of_any_case(const char* expression);

  /// A place where it matches: the text there, and those of its groups ("" for one that does not take part).
  using Match = std::vector<std::string>;
  Match first_in(const std::string& text) const;  // empty: none
  Match whole(const std::string& text) const;     // empty: it does not match all of the text
  std::vector<Match> all_in(const std::string& text) const;
  bool is_in(const std::string& text) const { return !first_in(text).empty(); }
  bool matches(const std::string& text) const { return !whole(text).empty(); }

 private:
  struct Compiled;
  explicit Pattern(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  friend std::string replaced(const std::string&, const Pattern&, const std::string&);
  std::shared_ptr<const Compiled> compiled_;
};

/// `text` with every match replaced; "$1" in `by` is the first group.
std::string replaced(const std::string& text, const Pattern&, const std::string& by);

}  // namespace megalith::test
