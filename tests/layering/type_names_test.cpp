#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/layering/tree.h"

// Two types with the same qualified name break the one-definition rule, even if they are in different
// libraries. No tool reports that: the linker picks the constructors and destructors of one of them.
namespace megalith {
namespace {

using test::sources;
using test::text_of;

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// If a comment, literal or preprocessor line begins at `at`, the position after it; otherwise `at`. A raw
/// string ends at its own delimiter.
size_t past_silence(std::string_view text, size_t at) {
  const auto end = [&](size_t found, size_t more) { return found == text.npos ? text.size() : found + more; };
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("//")) return end(text.find('\n', at), 0);
  if (rest.starts_with("/*")) return end(text.find("*/", at + 2), 2);
  if (rest.starts_with("R\"")) {
    const size_t open = text.find('(', at);
    const std::string close = ")" + std::string(text.substr(at + 2, open - at - 2)) + "\"";
    return end(text.find(close, open), close.size());
  }
  if (rest[0] == '#') {
    size_t line = text.find('\n', at);
    while (line != text.npos && text[line - 1] == '\\') line = text.find('\n', line + 1);
    return end(line, 0);
  }
  if (rest[0] != '"' && rest[0] != '\'') return at;
  for (size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == rest[0])
      return i + 1;
  }
  return text.size();
}

/// The tokens of a text: names and numbers, "::", and every other non-blank character.
std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> tokens;
  for (size_t at = 0; at < text.size();) {
    if (const size_t past = past_silence(text, at); past != at) {
      at = past;
      continue;
    }
    size_t end = at + 1;
    if (in_name(text[at])) {
      const bool number = std::isdigit(static_cast<unsigned char>(text[at])) != 0;
      while (end < text.size() && (in_name(text[end]) || (number && text[end] == '\''))) ++end;
    } else if (text.substr(at, 2) == "::") {
      end = at + 2;
    }
    if (std::isspace(static_cast<unsigned char>(text[at])) == 0)
      tokens.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return tokens;
}

/// What a '{' opens; found from the tokens between the previous statement and the '{'.
struct Scope {
  enum class Kind { kNamespace, kType, kOther } kind = Kind::kOther;
  std::string name;  // empty for an unnamed namespace
};

using Head = std::vector<std::string>;

std::string joined(Head::const_iterator begin, Head::const_iterator end) {
  std::string out;
  for (auto token = begin; token != end; ++token) out += *token;
  return out;
}

/// The position after the bracketed group that opens at `at`: (), <> or [].
Head::const_iterator past_brackets(Head::const_iterator at, Head::const_iterator end) {
  const std::string open = *at, close = open == "(" ? ")" : open == "<" ? ">" : "]";
  int depth = 0;
  for (; at != end; ++at) {
    if (*at == open) ++depth;
    if (*at == close && --depth == 0) return at + 1;
  }
  return end;
}

/// The type that a declaration such as `class A<int>::B final : …` defines. kOther if it defines none, as
/// `struct stat info`.
Scope type_after_key(Head::const_iterator at, Head::const_iterator end) {
  if (at != end && (*at == "class" || *at == "struct")) ++at;  // skips `class` or `struct` after `enum`
  while (at != end && (*at == "[" || *at == "alignas"))
    at = past_brackets(*at == "alignas" ? at + 1 : at, end);
  const auto begin = at;
  while (at != end && in_name((*at)[0])) {
    ++at;
    if (at != end && *at == "<") at = past_brackets(at, end);
    if (at == end || *at != "::") break;
    ++at;
  }
  const auto name = at;
  if (begin == name) return {};
  if (at != end && *at == "final") ++at;
  if (at != end && *at != ":") return {};
  return {Scope::Kind::kType, joined(begin, name)};
}

Scope scope_of(const Head& head) {
  if (const auto found = std::find(head.begin(), head.end(), "namespace"); found != head.end())
    return {Scope::Kind::kNamespace, joined(found + 1, head.end())};
  for (auto at = head.begin(); at != head.end();) {
    if (*at == "(" || *at == "[" || (*at == "<" && at != head.begin() && at[-1] == "template")) {
      at = past_brackets(at, head.end());
      continue;
    }
    const bool key = *at == "class" || *at == "struct" || *at == "union" || *at == "enum";
    if (key) return type_after_key(at + 1, head.end());
    ++at;
  }
  return {};
}

/// The qualified names of all classes, structs, unions and enums that a text defines. Without types in
/// unnamed namespaces and in functions, which other files do not see.
std::vector<std::string> types_in(std::string_view text) {
  std::vector<std::string> types;
  std::vector<Scope> scopes;
  Head head;
  const auto visible = [&] {
    return std::all_of(scopes.begin(), scopes.end(), [](const Scope& scope) { return !scope.name.empty(); });
  };
  for (const std::string& token : tokens_of(text)) {
    if (token == "{") {
      Scope scope = scope_of(head);
      if (scope.kind == Scope::Kind::kType && visible()) {
        std::string name;
        for (const Scope& outer : scopes) name += outer.name + "::";
        types.push_back(name + scope.name);
      }
      scopes.push_back(std::move(scope));
    } else if (token == "}" && !scopes.empty()) {
      scopes.pop_back();
    }
    if (token == "{" || token == "}" || token == ";")
      head.clear();
    else
      head.push_back(token);
  }
  return types;
}

TEST(TypeNames, AreFoundWhereTheyAreDefined) {
  const std::vector<std::string> found = types_in(R"cpp(
#pragma once
#define BROKEN struct Macro {
    namespace megalith::a {
    class Declared;
    class One final : public Base<int> {  // struct Comment {
      struct Inner {
        int x = 1'000;
      };
      enum class Kind : uint8_t { kA };
      void f() const {
        struct Local {
          int y;
        };
        stat info{};
      }
      struct stat info {};
    };
    template <class T, class U = struct Other>
    struct Two {
      const char* text = "struct Text {";
    };
    template <>
    struct Two<int, char> {};
    struct One::Hidden {};
    struct alignas(64) Wide {};
    union Either {
      int a;
    };
    struct Tag* make(struct Tag* tag) {
      return tag;
    }
    namespace {
    struct Private {};
    }
    }  // namespace megalith::a
    struct Last {};
  )cpp");
  const std::vector<std::string> wanted = {
      "megalith::a::One",  "megalith::a::One::Inner",    "megalith::a::One::Kind",
      "megalith::a::Two",  "megalith::a::Two<int,char>", "megalith::a::One::Hidden",
      "megalith::a::Wide", "megalith::a::Either",        "Last"};
  EXPECT_EQ(found, wanted);
}

// Sources of apps are not checked, since each app is a program of its own; their headers are.
TEST(TypeNames, AreDefinedOnceInLibcoreAndTheHeadersOfApps) {
  std::map<std::string, std::string> defined;  // name -> file
  for (const char* folder : {"libcore", "apps"})
    for (const std::string& file : sources(folder)) {
      if (!file.ends_with(".h") && !(file.starts_with("libcore/") && file.ends_with(".cpp"))) continue;
      for (const std::string& type : types_in(text_of(file))) {
        const auto [at, fresh] = defined.emplace(type, file);
        EXPECT_TRUE(fresh || at->second == file)
            << type << " is defined in " << at->second << " and " << file;
      }
    }
  EXPECT_GT(defined.size(), 400u);
}

}  // namespace
}  // namespace megalith
