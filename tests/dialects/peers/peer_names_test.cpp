#include "libcore/dialects/peers/peer_names.h"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/once/pattern.h"

namespace megalith::test {
namespace {

// tests/apps/options_test.cpp compares every hint with the options of megalith-pretrain.
TEST(PeerNames, AreUniqueAndInTheFormOfKeys) {
  std::set<std::string> names;
  for (const PeerName& peer : peer_names()) {
    EXPECT_EQ(option_key(peer.name), peer.name);
    EXPECT_TRUE(names.insert(peer.name).second) << peer.name;
  }
}

TEST(PeerNames, AreInTheDocs) {
  const std::string page = read_file(MEGALITH_SOURCE_DIR "/docs/peers.md");
  const Pattern row("\n\\| `--([^`]+)` \\| ([^|]+) \\|");
  std::vector<std::string> ours;
  for (const PeerName& peer : peer_names()) ours.push_back(concat(peer.name, ": ", peer.ours));
  std::vector<std::string> theirs;
  for (const Pattern::Match& match : row.all_in(page))
    theirs.push_back(concat(match[1], ": ", replaced(match[2], "`", "")));
  EXPECT_EQ(theirs, ours);
}

}  // namespace
}  // namespace megalith::test
