#include "libcore/launch/rank_channel.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/hash/hmac.h"
#include "libcore/hash/sha256.h"

namespace megalith::test {
namespace {

using Greetings = ProvenMessages::Greetings;
constexpr size_t kMax = 1000;
constexpr Greetings kGreetings = {.first = "first", .other = "other"};

ProvenMessages first(std::string_view token = "t", const Greetings& greetings = kGreetings) {
  return {token, greetings, RankSide::kFirst};
}
ProvenMessages other(std::string_view token = "t", const Greetings& greetings = kGreetings) {
  return {token, greetings, RankSide::kOther};
}

TEST(ProvenMessages, ArriveInOrderAndIncompleteOnesAreWaitedFor) {
  ProvenMessages here = other(), there = first();
  const std::string whole = here.packed("hello");
  for (size_t size = 0; size < whole.size(); ++size) {
    std::string part = whole.substr(0, size);
    EXPECT_FALSE(there.take(part, kMax)) << size;
  }
  std::string received = whole;
  for (const char* next : {"", "again"}) received += here.packed(next);
  EXPECT_EQ(there.take(received, kMax), "hello");
  EXPECT_EQ(there.take(received, kMax), "");
  EXPECT_EQ(there.take(received, kMax), "again");
  EXPECT_EQ(received, "");
}

// The proof computed by its definition, with functions that tests/hash compares with published values.
TEST(ProvenMessages, AreHmacsOverSideNumberAndDigest) {
  const std::string key = hmac_sha256_hex("t", "megalith rendezvousfirstother");
  const std::string proof = hmac_sha256_hex(key, "1 0 " + sha256_hex("hello"));
  EXPECT_EQ(other().packed("hello"), std::string("\5\0\0\0\0\0\0\0hello", 13) + proof);
}

TEST(ProvenMessages, AreRefusedWithoutProof) {
  const auto refused = [](std::string received, ProvenMessages by = first()) {
    EXPECT_THROW(by.take(received, kMax), Unproven);
  };
  refused(other("another").packed("hello"));
  refused(other("").packed("hello"));
  refused(ProvenMessages::unproven());
  refused(
      other("t", {.first = "First", .other = "other"}).packed("hello"));  // replayed from another connection
  refused(other("t", {.first = "first", .other = "Other"}).packed("hello"));
  refused(first().packed("hello"));  // sent back to its sender
  ProvenMessages here = other();
  (void)here.packed("hello");
  refused(here.packed("hello"));  // the second message, taken as the first
  const std::string good = other().packed("hello");
  for (size_t at = 8; at < good.size(); ++at) {  // changes each byte after the length
    std::string bad = good;
    bad[at] ^= 1;
    refused(bad);
  }
}

TEST(ProvenMessages, AreBounded) {
  ProvenMessages here = other(), there = first();
  // Must be refused before the rest has arrived.
  std::string received = here.packed(std::string(kMax + 1, 'x')).substr(0, 8);
  EXPECT_THROW(there.take(received, kMax), Error);
  received = std::string(8, '\xff');
  EXPECT_THROW(there.take(received, kMax), Error);
}

TEST(Greeting, IsKnownByItsBeginning) {
  EXPECT_TRUE(may_be_greeting(""));
  EXPECT_TRUE(may_be_greeting("MGL"));
  EXPECT_TRUE(may_be_greeting("MGLRDZV2xyz"));
  EXPECT_FALSE(may_be_greeting("MGLRDZV1"));
  EXPECT_FALSE(may_be_greeting("GET"));
}

}  // namespace
}  // namespace megalith::test
