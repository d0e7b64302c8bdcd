// The section "Threads" of docs/design.md must name every file that starts a thread, and no other file.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/layering/tree.h"
#include "tests/support/once/pattern.h"

namespace megalith {
namespace {

/// The name of a source on the page: "threads/beside" for "libcore/threads/beside.cpp".
std::string name_of(const std::string& source) {
  const size_t begin = std::string("libcore/").size();
  return source.substr(begin, source.rfind('.') - begin);
}

TEST(DesignPage, NamesEachFileThatStartsAThread) {
  // Names such as std::thread::id do not start a thread.
  static const test::Pattern kStart(
      R"(std::j?thread\b(?!::)|\bpthread_create\b|std::async\b|\bthrd_create\b)");
  std::set<std::string> starting;
  for (const std::string& source : test::sources("libcore"))
    if (kStart.is_in(test::text_of(source))) starting.insert(name_of(source));

  const std::string page = test::text_of("docs/design.md");
  const size_t section = page.find("\n## Threads\n");
  ASSERT_NE(section, page.npos);
  static const test::Pattern kKind(R"(\n\|[^|\n]*\(`([a-z_/]+)`\) \|)");
  std::set<std::string> named;
  for (const test::Pattern::Match& at : kKind.all_in(page.substr(section))) named.insert(at[1]);
  EXPECT_EQ(named, starting);
}

}  // namespace
}  // namespace megalith
