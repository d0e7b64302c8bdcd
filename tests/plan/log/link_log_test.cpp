#include "libcore/plan/log/link_log.h"

#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "tests/plan/problems.h"

namespace megalith {
namespace {

using test::gpt_22b;

/// The output of all_reduce_perf of nccl-tests 2.13, with `busbw` for its largest message.
std::string output(int machines, int each, const std::string& busbw) {
  std::string text =
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 4294967296 step: 2(factor) warmup iters: 5 iters: 20\n#\n"
      "# Using devices\n";
  for (int rank = 0; rank < machines * each; ++rank)
    text += "#  Rank " + std::to_string(rank) + " Group  0 Pid " + std::to_string(2500 + rank) + " on  node" +
            std::to_string(rank / each) + " device  " + std::to_string(rank % each) +
            " [0x07] NVIDIA A100-SXM4-80GB\n";
  return text +
         "#\n#                                                              out-of-place                     "
         "  "
         "in-place\n"
         "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   "
         "algbw   busbw #wrong\n"
         "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  "
         "(GB/s)  (GB/s)\n"
         "           8             2     float     sum      -1    34.12    0.00    0.00      0    33.85    "
         "0.00    0.00      0\n"
         "  4294967296    1073741824     float     sum      -1  32391.0  132.60  " +
         busbw +
         "      0  32380.0  132.64  999.99      0\n"
         "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 61.2\n";
}

TEST(LinkLog, ReadsTheLargestMessageOutOfPlace) {
  const LinkLog log = parse_link_log(output(2, 8, "232.05"), "all_reduce.txt");
  EXPECT_EQ(log.ranks, 16);
  EXPECT_EQ(log.machines, 2);
  EXPECT_DOUBLE_EQ(log.bus_bandwidth, 232.05e9);
}

TEST(LinkLog, OfOneMachineSetsTheLinksAndOfSeveralTheNetwork) {
  const PlanProblem p = gpt_22b(64);  // A100: links of 300 GB/s; 25 GB/s of network for each of eight devices
  const Coefficients here = with_links(parse_link_log(output(1, 8, "231.0"), "a"), p, "a");
  EXPECT_DOUBLE_EQ(here.link_rate, 231.0 / 300);
  EXPECT_EQ(here.network_rate, p.coefficients->network_rate);
  const Coefficients across = with_links(parse_link_log(output(2, 8, "150.0"), "b"), p, "b");
  EXPECT_DOUBLE_EQ(across.network_rate, 150.0 / 200);
  EXPECT_EQ(across.link_rate, p.coefficients->link_rate);
}

TEST(LinkLog, RefusesARateThatTheDeviceCannotHave) {
  const PlanProblem p = gpt_22b(64);
  for (const char* rate : {"12.0", "460.0"}) {
    try {
      with_links(parse_link_log(output(1, 8, rate), "perf.txt"), p, "perf.txt");
      ADD_FAILURE() << rate;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_NE(std::string(error.what()).find("perf.txt: 8 devices of 1 machines reached"),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(LinkLog, RefusesWhatWasTruncated) {
  const std::string whole = output(1, 8, "231.0");
  const size_t table = whole.find("           8 "), row = whole.find("   sum      -1  32391");
  for (const std::string& text : {whole.substr(0, table), whole.substr(0, row), whole.substr(table)})
    EXPECT_THROW(parse_link_log(text, "cut.txt"), Error) << text;
}

}  // namespace
}  // namespace megalith
