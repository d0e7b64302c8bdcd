#include "libcore/parallel/exchange.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/parallel/threads/thread_comm.h"

namespace megalith {
namespace {

enum class Phase { kBegin = 3, kEnd = 7 };

struct Point {
  int32_t x = 0;
  std::optional<double> y = {};
  bool operator==(const Point&) const = default;
};

struct Report {
  Phase phase = Phase::kBegin;
  std::string message = {};
  std::vector<Point> points = {};
  std::vector<std::string> names = {};
  template <class V>
  void members(V&& visit) {
    visit(phase, message, points, names);
  }
  bool operator==(const Report&) const = default;
};

struct Nested {
  std::vector<Report> reports = {};
  template <class V>
  void members(V&& visit) {
    visit(reports);
  }
  bool operator==(const Nested&) const = default;
};

const Report kReport{
    Phase::kEnd, std::string("\xff\0\n", 3), {{1, 0.1}, {-2, std::nullopt}}, {"", "rank 3", "x"}};

TEST(Exchange, PacksAndUnpacksValues) {
  EXPECT_EQ(unpacked<Phase>(packed(Phase::kEnd)), Phase::kEnd);
  EXPECT_EQ(unpacked<double>(packed(0.1)), 0.1);
  EXPECT_EQ(unpacked<std::string>(packed(std::string())), "");
  EXPECT_EQ(unpacked<Report>(packed(kReport)), kReport);
  const Nested nested{{kReport, {}}};
  EXPECT_EQ(unpacked<Nested>(packed(nested)), nested);
}

TEST(Exchange, LaysPlainValuesAndLengthsAsInMemory) {
  EXPECT_EQ(packed(uint32_t{0x01020304}), std::string("\4\3\2\1"));
  EXPECT_EQ(packed(std::string("ab")), std::string("\2\0\0\0\0\0\0\0ab", 10));
}

TEST(Exchange, RefusesBytesOfAnotherValue) {
  const std::string bytes = packed(kReport);
  const auto refused = [](const std::string& wrong) {
    try {
      (void)unpacked<Report>(wrong);
    } catch (const Error& error) {
      return error.kind() == ErrorKind::kData;
    }
    return false;
  };
  for (size_t length = 0; length < bytes.size(); ++length) EXPECT_TRUE(refused(bytes.substr(0, length)));
  EXPECT_TRUE(refused(bytes + "x"));
  EXPECT_TRUE(refused(packed(Phase::kEnd) + std::string(8, '\xff')));  // a length that exceeds all memory
}

TEST(Exchange, TakesNoByteForABoolButZeroAndOne) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    if (byte < 2)
      EXPECT_EQ(unpacked<bool>(bytes), byte == 1);
    else
      EXPECT_THROW((void)unpacked<bool>(bytes), Error) << byte;
  }
}

TEST(Exchange, NamesTheRankWhoseBytesAreWrong) {
  const std::string bytes = packed(kReport);
  for (size_t length = 0; length < bytes.size(); ++length) {
    const HostExchange exchange = [&](std::string_view mine) {
      return std::vector<std::string>{std::string(mine), bytes.substr(0, length), bytes};
    };
    try {
      (void)exchange_values(exchange, kReport);
      ADD_FAILURE() << length;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kComm);
      EXPECT_EQ(std::string_view(error.what()).find("rank 1: "), 0U) << error.what();
    }
  }
}

TEST(Exchange, GivesEveryRanksValueInRankOrder) {
  run_thread_ranks(3, {}, [](Communicator& world) {
    EXPECT_EQ(exchange_values(world, Point{world.rank(), 0.5}),
              (std::vector<Point>{{0, 0.5}, {1, 0.5}, {2, 0.5}}));
    Report mine = kReport;
    mine.names.push_back(std::to_string(world.rank()));
    const std::vector<Report> all = exchange_values(world, mine);
    ASSERT_EQ(all.size(), 3U);
    EXPECT_EQ(all[2].names.back(), "2");
  });
}

TEST(Exchange, TakesAHostExchange) {
  const HostExchange twice = [](std::string_view mine) {
    return std::vector<std::string>{std::string(mine), std::string(mine)};
  };
  EXPECT_EQ(exchange_values(twice, kReport), (std::vector<Report>{kReport, kReport}));
}

TEST(Exchange, LetsTheFirstRankDecide) {
  run_thread_ranks(2, {}, [](Communicator& world) {
    EXPECT_EQ(rank0_value(world, world.rank() == 0 ? Phase::kEnd : Phase::kBegin), Phase::kEnd);
    EXPECT_EQ(rank0_value(world, std::string(world.rank() == 0 ? "given" : "ignored")), "given");
  });
}

}  // namespace
}  // namespace megalith
