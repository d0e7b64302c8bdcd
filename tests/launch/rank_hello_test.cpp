#include "libcore/launch/rank_hello.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith::test {
namespace {

RankHello hello(int rank) {
  Json options = Json::object();
  options.set("lr", 0.1);
  options.set("train_iters", 20);
  return {.version = "1", .job = "j", .rank = rank, .world = 4, .options = options};
}

TEST(RankHello, ComesBack) {
  const RankHello back = decode_hello(encode_hello(hello(3)));
  EXPECT_EQ(back.version, "1");
  EXPECT_EQ(back.job, "j");
  EXPECT_EQ(back.rank, 3);
  EXPECT_EQ(back.world, 4);
  EXPECT_EQ(back.options, hello(3).options);
}

// Bytes that an earlier version sent: a rank of another version must be able to read who it is.
TEST(RankHello, HasTheBytesOfEarlierVersions) {
  EXPECT_EQ(
      encode_hello(hello(3)),
      R"({"version": "1", "job": "j", "rank": 3, "world": 4, "options": {"lr": 0.1, "train_iters": 20}})");
  EXPECT_EQ(encode_failure({ErrorKind::kUsage, "no"}), R"({"exit_code": 64, "message": "no"})");
}

TEST(RankHello, IsRefusedWhenItIsNone) {
  const std::string whole = encode_hello(hello(3));
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(decode_hello(whole.substr(0, size)), Error) << size;
  for (const char* text :
       {"{}", "[]", "GET / HTTP/1.1", R"({"version": "1", "job": "", "rank": -1, "world": 2, "options": {}})",
        R"({"version": "1", "job": "", "rank": 4294967296, "world": 2, "options": {}})",
        R"({"version": "1", "job": "", "rank": 0, "world": 2, "options": []})"})
    EXPECT_THROW(decode_hello(text), Error) << text;
}

TEST(RankHello, IsComparedWithRankZeros) {
  EXPECT_EQ(refusal(hello(0), hello(1)), "");
  RankHello other = hello(1);
  other.job = "another\x1b[2J";
  EXPECT_EQ(refusal(hello(0), other),
            "it belongs to another job of the launcher (TORCHELASTIC_RUN_ID or SLURM_JOB_ID): "
            "\"another\\x1b[2J\", rank 0 to \"j\"");
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

TEST(RankHello, ShowsNoControlCharacterAndIsBounded) {
  RankHello other = hello(2);
  other.options.set("evil\x1b[2J",
                    "\xc2\x9b"
                    "1m" +
                        std::string(1 << 18, 'x'));
  for (int i = 0; i < 1000; ++i) other.options.set("option" + std::to_string(i), i);
  const std::string list = option_differences(hello(0), other);
  EXPECT_LT(list.size(), 2100U);
  EXPECT_NE(list.find("--evil\\x1b[2J is null on rank 0 and \"\\xc2\\x9b1mxxx"), std::string::npos) << list;
  other.version = "\x1b" + std::string(1 << 18, 'v');
  EXPECT_LT(refusal(hello(0), other).size(), 600U);
  EXPECT_EQ(refusal(hello(0), other).find('\x1b'), std::string::npos);
}

std::string failure_of(std::string_view answer, ErrorKind kind) {
  try {
    fail_as(answer, "rank 0:");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
}

TEST(RankHello, TellsAFailure) {
  EXPECT_EQ(failure_of(encode_failure({ErrorKind::kUsage, "no"}), ErrorKind::kUsage), "rank 0: no");
  EXPECT_EQ(failure_of(encode_failure({ErrorKind::kComm, "gone"}), ErrorKind::kComm), "rank 0: gone");
  EXPECT_EQ(failure_of(encode_failure({ErrorKind::kUsage, "a\x1b]0;b\n"}), ErrorKind::kUsage),
            "rank 0: a\\x1b]0;b\\x0a");
  EXPECT_LT(
      failure_of(encode_failure({ErrorKind::kUsage, std::string(60000, 'x')}), ErrorKind::kUsage).size(),
      4100U);
  for (const char* answer : {"{}", "[]", "HTTP/1.1 400", R"({"exit_code": "64", "message": "m"})"})
    EXPECT_EQ(failure_of(answer, ErrorKind::kComm).find("rank 0: "), 0U) << answer;
}

// Answers that no rank 0 of this program gives: their code is no error's, or their message is blank.
TEST(RankHello, BelievesNoFailureThatIsNone) {
  for (const char* code : {"-1", "0", "1", "63", "76", "99999999999"})
    EXPECT_EQ(failure_of(concat(R"({"exit_code":)", code, R"(,"message":"m"})"), ErrorKind::kComm),
              "rank 0: its answer does not come from this program");
  for (const char* message : {"", " ", "\\n", "\\t \\r\\n"})
    for (const char* code : {"0", "64", "75"})
      EXPECT_EQ(
          failure_of(concat(R"({"exit_code":)", code, R"(,"message":")", message, R"("})"), ErrorKind::kComm),
          "rank 0: its answer does not come from this program");
}

}  // namespace
}  // namespace megalith::test
