#include "libcore/launch/rank_table.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

std::string table(const std::string& ranks_of_a, const std::string& ranks_of_b,
                  const std::string& status = "completed") {
  return R"({"server_list": [{"server_id": "a", "device": [)" + ranks_of_a +
         R"(]}, {"server_id": "b", "device": [)" + ranks_of_b + R"(]}], "status": ")" + status + "\"}";
}

std::string rank(const std::string& id, const std::string& device = "0") {
  return R"({"device_id": ")" + device + R"(", "rank_id": )" + id + "}";
}

/// A table that lists two servers, but whose server_count is `servers`.
std::string counted(const std::string& servers) {
  return R"({"server_count": )" + servers + ", " + table(rank("0"), rank("1")).substr(1);
}

TEST(RankTable, CountsTheRanksOfAServer) {
  const TempDir dir;
  // Ranks need not be in ascending order, and may be strings or numbers.
  write_file(dir / "t",
             table(rank("\"2\"") + "," + rank("3", "1"), rank("\"1\"") + "," + rank("\"0\"", "7")));
  const RankTable third = read_rank_table(dir / "t", 3);
  EXPECT_EQ(third.world, 4);
  EXPECT_EQ(third.first_server, "b");
  EXPECT_EQ(third.local_rank, 1);
  EXPECT_EQ(third.local_world, 2);
  EXPECT_EQ(read_rank_table(dir / "t", 0).port, third.port);
}

// Servers may store the same table in different forms, but their ranks must still get the same port.
TEST(RankTable, HasOnePortInAnyForm) {
  const TempDir dir;
  write_file(dir / "wide", table(rank("\"0\""), rank("\"1\"")));
  write_file(dir / "other", table(rank("\"1\""), rank("\"0\"")));
  write_file(dir / "compact",
             R"({"server_list":[{"server_id":"a","device":[{"device_id":"0","rank_id":"0"}]},)"
             R"({"server_id":"b","device":[{"device_id":"0","rank_id":"1"}]}],"status":"completed"})"
             "\n\n");
  EXPECT_EQ(read_rank_table(dir / "compact", 0).port, read_rank_table(dir / "wide", 1).port);
  EXPECT_NE(read_rank_table(dir / "other", 0).port, read_rank_table(dir / "wide", 1).port);
}

TEST(RankTable, TakesAsManyServersAsItCounts) {
  const TempDir dir;
  for (const char* servers : {"\"2\"", "2"}) {
    write_file(dir / "t", counted(servers));
    EXPECT_EQ(read_rank_table(dir / "t", 1).world, 2) << servers;
  }
}

TEST(RankTable, MergesNoBadTable) {
  const TempDir dir;
  for (const char* device : {R"({"rank_id": "0"})", R"({"device_id": null, "rank_id": "0"})"}) {
    write_file(dir / "t", table(device, rank("1")));
    try {
      ADD_FAILURE() << merged_rank_table_text({dir / "t"});
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find(std::string(dir / "t") + ": server_list[0].device[0]"), 0U)
          << error.what();
    }
  }
}

TEST(RankTable, MergesNoServerWithoutAName) {
  const TempDir dir;
  write_file(dir / "t", R"({"server_list": [{"server_id": "", "device": [)" + rank("0") +
                            R"(]}], "status": "completed"})");
  try {
    ADD_FAILURE() << merged_rank_table_text({dir / "t"});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_EQ(std::string(error.what()).find(std::string(dir / "t") + ": server_list[0].server_id: \"\""), 0U)
        << error.what();
  }
}

// A server's table that lists a device twice is refused: two ranks would use that device.
TEST(RankTable, MergesNoDeviceTwice) {
  const TempDir dir;
  write_file(dir / "twice", R"({"server_list": [{"server_id": "a", "device": [)" + rank("0") + "," +
                                rank("1") + R"(]}], "status": "completed"})");
  write_file(dir / "once", rank_table_text({0, 1}, "b"));
  for (const std::vector<std::string>& paths : {std::vector<std::string>{dir / "twice"},
                                                {dir / "once", dir / "twice"},
                                                {dir / "twice", dir / "once"}})
    try {
      ADD_FAILURE() << merged_rank_table_text(paths);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_EQ(
          std::string(error.what()),
          std::string(dir / "twice") +
              ": server_list[0].device[1].device_id: \"0\" appears twice on server \"a\"; a device has one "
              "rank");
    }
  write_file(dir / "c", rank_table_text({0, 1}, "c"));
  EXPECT_NE(merged_rank_table_text({dir / "once", dir / "c"}).find("\"rank_id\": \"3\""), std::string::npos);
}

TEST(RankTable, RefusesWhatIsNotCompleteAndOnce) {
  const TempDir dir;
  const struct {
    std::string text;
    const char* part;
    ErrorKind kind;
  } cases[] = {
      {table(rank("\"0\""), rank("\"1\""), "initializing"), "status", ErrorKind::kUsage},
      {table(rank("\"0\""), rank("\"0\"")), "rank_id 0 appears twice", ErrorKind::kUsage},
      {table(rank("\"0\""), rank("\"2\"")), "rank_id 1 is missing", ErrorKind::kUsage},
      {table(rank("\"0\""), rank("\"x\"")), "\"x\" is not a rank", ErrorKind::kUsage},
      {table("", ""), "holds 0 ranks", ErrorKind::kUsage},
      {table(rank("\"0\""), ""), "holds 1 ranks, not RANK_ID 1", ErrorKind::kUsage},
      {"{\"server_list\": 3}", ": server_list: 3 is not a list", ErrorKind::kData},
      {"{}", "has no \"server_list\"", ErrorKind::kData},
      {table(rank("\"0\""), R"({"rank_id": "1"})"), ": server_list[1].device[0]: has no \"device_id\"",
       ErrorKind::kData},
      {table(rank("\"0\""), R"({"device_id": null, "rank_id": "1"})"),
       ": server_list[1].device[0].device_id: null is not a device", ErrorKind::kUsage},
      {table(rank("\"0\""), R"({"device_id": "0", "device_ip": null, "rank_id": "1"})"),
       ": server_list[1].device[0].device_ip: null is not a string", ErrorKind::kData},
      {counted("\"3\""), ": server_count: \"3\", but server_list holds 2", ErrorKind::kUsage},
      {counted("1"), ": server_count: 1, but server_list holds 2", ErrorKind::kUsage},
      {counted("null"), ": server_count: null is not a number of servers", ErrorKind::kUsage},
      {table(rank("0") + "," + rank("1"), ""),
       ": server_list[0].device[1].device_id: \"0\" appears twice on server \"a\"", ErrorKind::kUsage},
      {table(rank("0", "3") + "," + rank("1", "4") + R"(, {"device_id": 3, "rank_id": 2})", ""),
       ": server_list[0].device[2].device_id: 3 appears twice on server \"a\"", ErrorKind::kUsage},
      {table(rank("\"" + std::string(1 << 16, 'x') + "\""), ""), "xxx…", ErrorKind::kUsage},
      {"{", "", ErrorKind::kData},
  };
  for (const auto& c : cases) try {
      write_file(dir / "t", c.text);
      read_rank_table(dir / "t", 1);
      ADD_FAILURE() << c.text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), c.kind) << error.what();
      EXPECT_NE(std::string(error.what()).find(c.part), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(dir / "t"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace megalith::test
