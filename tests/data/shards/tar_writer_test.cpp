#include "libcore/data/shards/tar_writer.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

// The system's tar reads the archive.
TEST(TarWriter, WritesWhatTarReads) {
  const test::TempDir dir;
  std::string archive;
  TarWriter tar([&](std::string_view bytes) { archive += bytes; });
  for (const size_t size : {0U, 1U, 511U, 512U, 513U, 200'000U}) {
    write_file(dir / "file", std::string(size, 'a'));
    tar.add(concat("shard-", size), dir / "file");
  }
  tar.finish();
  EXPECT_EQ(archive.size() % 512, 0U);
  write_file(dir / "all.tar", archive);
  const test::CommandResult listed = test::run_command("tar -tvf " + (dir / "all.tar"));
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_EQ(listed.err, "");
  EXPECT_NE(listed.out.find("-rw-r--r-- 0/0          200000 1970-01-01"), std::string::npos) << listed.out;
  EXPECT_EQ(test::run_command("cd " + dir.path().string() + " && tar -xf all.tar").code, 0);
  for (const size_t size : {0U, 1U, 511U, 512U, 513U, 200'000U})
    EXPECT_EQ(read_file(dir / concat("shard-", size)), std::string(size, 'a'));
}

// A file of 9 GiB, of which only the header is written: the sink ends the work then.
TEST(TarWriter, WritesSizesThatOctalDigitsCannotHold) {
  const test::TempDir dir;
  write_file(dir / "file", "");
  std::filesystem::resize_file(dir / "file", uint64_t{9} << 30);
  std::string header;
  struct Enough {};
  TarWriter tar([&](std::string_view bytes) {
    header = bytes;
    throw Enough{};
  });
  EXPECT_THROW(tar.add("large", dir / "file"), Enough);
  write_file(dir / "all.tar", header);
  EXPECT_NE(test::run_command("tar -tvf " + (dir / "all.tar")).out.find(" 9663676416 "), std::string::npos);
}

TEST(TarWriter, RefusesALongName) {
  const test::TempDir dir;
  write_file(dir / "file", "");
  TarWriter tar([](std::string_view) {});
  EXPECT_NO_THROW(tar.add(std::string(100, 'a'), dir / "file"));
  EXPECT_THROW(tar.add(std::string(101, 'a'), dir / "file"), Error);
}

}  // namespace
}  // namespace megalith
