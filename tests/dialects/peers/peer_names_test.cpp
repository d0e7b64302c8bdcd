#include "libcore/dialects/peers/peer_names.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace megalith::test
