#include "libcore/train/log/tensorboard.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::TempDir;

uint32_t crc_of(std::string_view text) {
  return crc32c(std::as_bytes(std::span(text.data(), text.size())));
}

TEST(Crc32c, GivesTheValuesOfRfc3720) {
  EXPECT_EQ(crc_of(""), 0U);
  EXPECT_EQ(crc_of("123456789"), 0xE3069283U);
  EXPECT_EQ(crc_of(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc_of(std::string(32, '\xff')), 0x62A8AB43U);
}

uint32_t mask(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

// Returns the data of each record, after it has checked lengths and checksums.
std::vector<std::string> records(const std::string& bytes) {
  std::vector<std::string> list;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    uint32_t length_crc = 0, data_crc = 0;
    if (bytes.size() - at < 16) throw std::runtime_error("cut record");
    std::memcpy(&length, &bytes[at], 8);
    std::memcpy(&length_crc, &bytes[at + 8], 4);
    EXPECT_EQ(length_crc, mask(crc_of(bytes.substr(at, 8))));
    if (bytes.size() - at < 16 + length) throw std::runtime_error("cut record");
    list.push_back(bytes.substr(at + 12, length));
    std::memcpy(&data_crc, &bytes[at + 12 + length], 4);
    EXPECT_EQ(data_crc, mask(crc_of(list.back())));
    at += 16 + length;
  }
  return list;
}

// Removes the wall time from an event: it is always the first field, with key 0x09 and eight bytes.
std::string without_time(const std::string& event) {
  EXPECT_EQ(event.at(0), '\x09');
  return event.substr(9);
}

using namespace std::string_literals;

TEST(EventWriter, WritesTheBytesOfTensorFlowsEvents) {
  const TempDir folder;
  EventWriter writer(folder / "tb", 0);
  writer.scalar("lm loss", 300, 6.5);
  writer.text("sample", 1, "ab\n");
  writer.flush();
  const std::vector<std::string> got = records(read_file(writer.path()));
  ASSERT_EQ(got.size(), 3U);
  EXPECT_EQ(without_time(got[0]), "\x1a\x0d"s + "brain.Event:2");
  // step 300 (varint ac 02); summary { value { tag, simple_value 6.5f = 0x40d00000 } }
  EXPECT_EQ(without_time(got[1]), "\x10\xac\x02\x2a\x10\x0a\x0e\x0a\x07lm loss\x15\x00\x00\xd0\x40"s);
  // tensor { dtype 7, shape { dim { size 1 } }, string_val }; metadata { plugin_data { plugin_name "text" } }
  EXPECT_EQ(without_time(got[2]), "\x10\x01\x2a\x23\x0a\x21\x0a\x06sample"s +
                                      "\x42\x0d\x08\x07\x12\x04\x12\x02\x08\x01\x42\x03" + "ab\n" +
                                      "\x4a\x08\x0a\x06\x0a\x04text");
}

TEST(EventWriter, MarksAResumedRun) {
  const TempDir folder;
  EventWriter writer(folder / "tb", 11);
  const std::vector<std::string> got = records(read_file(writer.path()));
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(without_time(got[1]), "\x10\x0b\x3a\x02\x08\x01"s);
}

TEST(EventWriter, NeverWritesOverAnotherFile) {
  const TempDir folder;
  const EventWriter a(folder / "tb", 0), b(folder / "tb", 0);
  EXPECT_NE(a.path(), b.path());
}

TEST(EventWriter, NamesTheFolderThatCannotBeMade) {
  const TempDir folder;
  write_file(folder / "file", "x");
  EXPECT_THROW(EventWriter(folder / "file/tb", 0), Error);
}

TEST(EventWriterPython, IsReadBackByTensorBoard) {
  if (!test::python_has("tensorboard")) GTEST_SKIP() << "Python has no tensorboard (tools/setup)";
  const TempDir folder;
  {
    EventWriter first(folder / "tb", 0);
    for (int step = 1; step <= 20; ++step) first.scalar("lm loss", step, 7.0 - 0.125 * step);
    first.text("sample", 10, "def f(x):\n    return “x”");
  }
  {
    EventWriter resumed(folder / "tb",
                        16);  // the first run had continued after its last checkpoint, at step 15
    resumed.scalar("lm loss", 16, 1.5);
  }
  const test::CommandResult result = test::run_command(test::python() + " " + MEGALITH_SOURCE_DIR +
                                                       "/tests/train/read_tensorboard.py " + (folder / "tb"));
  ASSERT_EQ(result.code, 0) << result.err;
  std::vector<Json> lines;
  for (const std::string& line : split(trim(result.out), '\n'))
    lines.push_back(Json::parse(line, "tensorboard"));
  ASSERT_EQ(lines.size(), 17U);
  for (int step = 1; step <= 16; ++step) {
    const Json& line = lines[static_cast<size_t>(step - 1)];
    EXPECT_EQ(line["step"].as_int(), step);
    EXPECT_EQ(line["value"].as_double(), step == 16 ? 1.5 : 7.0 - 0.125 * step);
  }
  EXPECT_EQ(lines[16]["text"].as_string(), "def f(x):\n    return “x”");
}

}  // namespace
}  // namespace megalith
