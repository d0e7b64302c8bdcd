#include "libcore/text/prefix_trie.h"

#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace megalith {
namespace {

using Found = std::vector<std::pair<size_t, int32_t>>;

Found found(const PrefixTrie& trie, std::string_view text) {
  Found all;
  trie.each(text, [&](size_t bytes, int32_t id) { all.emplace_back(bytes, id); });
  return all;
}

TEST(PrefixTrie, FindsEachTextThatBeginsAnother) {
  const std::vector<std::string> texts = {"", "a", "abc", std::string("ab\0", 3), "\xFF", "ab", "b"};
  const PrefixTrie trie(texts);
  EXPECT_EQ(found(trie, "abcd"), (Found{{1, 1}, {2, 5}, {3, 2}}));
  EXPECT_EQ(found(trie, std::string("ab\0x", 4)), (Found{{1, 1}, {2, 5}, {3, 3}}));
  EXPECT_EQ(found(trie, "\xFF"), (Found{{1, 4}}));
  EXPECT_EQ(found(trie, "c"), Found());
  EXPECT_EQ(found(trie, ""), Found());
  EXPECT_EQ(trie.find("ab"), 5);
  EXPECT_EQ(trie.find("abcd"), -1);
  EXPECT_EQ(trie.find(""), -1);
  EXPECT_EQ(found(PrefixTrie(std::vector<std::string>{""}), "a"), Found());
}

TEST(PrefixTrie, FindsWhatAMapFinds) {
  std::mt19937 random(1);
  for (const unsigned letters : {2U, 7U, 256U}) {
    const auto text_of = [&](size_t length) {
      std::string text;
      for (; length > 0; --length) text += static_cast<char>(random() % letters);
      return text;
    };
    std::vector<std::string> texts;
    std::map<std::string, int32_t> ids;
    for (int32_t id = 0; id < 3000; ++id) {
      texts.push_back(text_of(random() % (random() % 20 == 0 ? 300 : 9)));
      if (!texts.back().empty()) ids[texts.back()] = id;
    }
    const PrefixTrie trie(texts);
    EXPECT_TRUE(PrefixTrie::fit(trie.nodes(), texts.size()));
    for (int i = 0; i < 3000; ++i) {
      const std::string text = texts[random() % texts.size()] + text_of(3);
      Found wanted;
      for (size_t bytes = 1; bytes <= text.size(); ++bytes)
        if (const auto at = ids.find(text.substr(0, bytes)); at != ids.end())
          wanted.emplace_back(bytes, at->second);
      ASSERT_EQ(found(trie, text), wanted);
    }
  }
}

TEST(PrefixTrie, IsOnlyReadIfNoStepLeadsBeyondIt) {
  const PrefixTrie trie(std::vector<std::string>{"a", "ab"});
  EXPECT_TRUE(PrefixTrie::fit(trie.nodes(), 2));
  EXPECT_FALSE(PrefixTrie::fit(trie.nodes(), 1));
  EXPECT_FALSE(PrefixTrie::fit(SharedArray<PrefixTrie::Node>(), 2));
  std::vector<PrefixTrie::Node> nodes(trie.nodes().begin(), trie.nodes().end());
  nodes[0].base = static_cast<uint32_t>(nodes.size());
  EXPECT_FALSE(PrefixTrie::fit(SharedArray(nodes), 2));
  nodes = std::vector<PrefixTrie::Node>(trie.nodes().begin(), trie.nodes().end() - 1);
  EXPECT_FALSE(PrefixTrie::fit(SharedArray(nodes), 2));
}

}  // namespace
}  // namespace megalith
