#include "libcore/launch/rank_hello.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith::test {
namespace {

RankHello hello(int rank) {
  Json options = Json::object();
  options.set("lr", 0.1);
  options.set("train_iters", 20);
  return {.version = "1", .token = token_digest("t"), .rank = rank, .world = 4, .options = options};
}

TEST(RankHello, ComesBackAndIsIncompleteBefore) {
  const std::string bytes = encode_hello(hello(3));
  EXPECT_EQ(bytes.substr(0, 8), "MGLRDZV1");
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_hello(bytes.substr(0, size))) << size;
  const auto back = decode_hello(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->rank, 3);
  EXPECT_EQ(back->world, 4);
  EXPECT_EQ(back->options, hello(3).options);
}

TEST(RankHello, IsRefusedWhenItIsNone) {
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n"), std::string("MGLRDZV1\xff\xff\xff\xff"),
        std::string("MGLRDZV1\x02\0\0\0{}", 14), std::string("MGLRDZV1\x02\0\0\0[]", 14)})
    EXPECT_THROW(decode_hello(bytes), Error) << bytes;
}

TEST(RankHello, NeverHoldsTheToken) {
  EXPECT_EQ(token_digest("").size(), 0U);
  EXPECT_EQ(token_digest("secret").size(), 64U);
  EXPECT_EQ(token_digest("secret").find("secret"), std::string::npos);
}

TEST(RankHello, IsComparedWithRankZeros) {
  EXPECT_EQ(refusal(hello(0), hello(1)), "");
  RankHello other = hello(1);
  other.token = token_digest("another");
  EXPECT_NE(refusal(hello(0), other).find("another job token"), std::string::npos);
  other = hello(1);
  other.world = 3;
  EXPECT_EQ(refusal(hello(0), other), "it counts 3 ranks, rank 0 counts 4");
  other = hello(4);
  EXPECT_EQ(refusal(hello(0), other), "it calls itself rank 4 of 4");
  other = hello(1);
  other.version = "2";
  EXPECT_EQ(refusal(hello(0), other), "it has version 2, rank 0 has 1");
}

TEST(RankHello, NamesOptionsThatDiffer) {
  EXPECT_EQ(option_differences(hello(0), hello(2)), "");
  RankHello other = hello(2);
  other.options.set("train_iters", 30);
  other.options.set("seed", 7);
  EXPECT_EQ(option_differences(hello(0), other),
            "--train-iters is 20 on rank 0 and 30 on rank 2; --seed is null on rank 0 and 7 on rank 2");
}

}  // namespace
}  // namespace megalith::test
