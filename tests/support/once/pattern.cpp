#include "tests/support/once/pattern.h"

#include <regex>

namespace megalith::test {
namespace {

Pattern::Match texts_of(const std::smatch& found) {
  Pattern::Match match;
  for (const std::ssub_match& group : found) match.push_back(group.str());
  return match;
}

}  // namespace

struct Pattern::Compiled {
  std::regex regex;
};

Pattern::Pattern(const char* expression) : compiled_(new Compiled{std::regex(expression)}) {}
Pattern::Pattern(const std::string& expression) : Pattern(expression.c_str()) {}
Pattern Pattern::of_any_case(const char* expression) {
  return Pattern(std::shared_ptr<const Compiled>(new Compiled{std::regex(expression, std::regex::icase)}));
}

Pattern::Match Pattern::first_in(const std::string& text) const {
  std::smatch found;
  return std::regex_search(text, found, compiled_->regex) ? texts_of(found) : Match();
}
Pattern::Match Pattern::whole(const std::string& text) const {
  std::smatch found;
  return std::regex_match(text, found, compiled_->regex) ? texts_of(found) : Match();
}
std::vector<Pattern::Match> Pattern::all_in(const std::string& text) const {
  std::vector<Match> all;
  for (std::sregex_iterator at(text.begin(), text.end(), compiled_->regex), end; at != end; ++at)
    all.push_back(texts_of(*at));
  return all;
}

std::string replaced(const std::string& text, const Pattern& pattern, const std::string& by) {
  return std::regex_replace(text, pattern.compiled_->regex, by);
}

}  // namespace megalith::test
