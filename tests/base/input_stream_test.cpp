#include "libcore/base/input_stream.h"

#include <random>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

std::string drain(const std::string& path, size_t room = 50000) {
  InputStream stream(path);
  std::string out, buffer(room, '\0');
  while (const size_t n = stream.read(buffer.data(), buffer.size())) out.append(buffer, 0, n);
  return out;
}

std::string error_of(const std::string& path, ErrorKind kind) {
  try {
    drain(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  ADD_FAILURE() << path << " was read";
  return {};
}

/// Text that compresses about four times, so that the decoders' own buffers matter.
std::string sample(size_t bytes) {
  std::mt19937 random(3);
  std::string text;
  while (text.size() < bytes) text += "word" + std::to_string(random() % 100) + ' ';
  text.resize(bytes);
  return text;
}

class InputStreamTest : public testing::Test {
 protected:
  /// Writes the text and its compressed form, made by the system's own tool.
  std::string compress(const std::string& text, const std::string& command) {
    write_file(dir_ / "plain", text);
    EXPECT_EQ(test::run_command(command + " < " + dir_ / "plain" + " > " + dir_ / "packed").code, 0);
    return dir_ / "packed";
  }
  void keep(const std::string& contents) { write_file(dir_ / "packed", contents); }
  test::TempDir dir_;
};

TEST_F(InputStreamTest, ReadsPlainFilesOfAnySize) {
  for (const size_t bytes : {0U, 1U, 5U, 6U, 7U, 262144U, 600001U}) {
    write_file(dir_ / "plain", sample(bytes));
    EXPECT_EQ(drain(dir_ / "plain"), sample(bytes));
    EXPECT_EQ(drain(dir_ / "plain", 1 + bytes / 7), sample(bytes));
  }
}

TEST_F(InputStreamTest, ReadsGzipAndZstd) {
  for (const char* command : {"gzip -1", "zstd -q -3", "zstd -q --no-check"}) {
    for (const size_t bytes : {0U, 1U, 1000U, 3'000'000U}) {
      SCOPED_TRACE(command);
      const std::string path = compress(sample(bytes), command);
      EXPECT_EQ(drain(path), sample(bytes));
      EXPECT_EQ(drain(path, 4096), sample(bytes));
      EXPECT_EQ(drain(path, 8'000'000), sample(bytes));
    }
  }
}

TEST_F(InputStreamTest, ReadsHighlyCompressedData) {
  const std::string zeros(20'000'000, '0');
  EXPECT_EQ(drain(compress(zeros, "gzip -9")), zeros);
  EXPECT_EQ(drain(compress(zeros, "zstd -q -19")), zeros);
}

TEST_F(InputStreamTest, ReadsAllMembersAndFrames) {
  for (const char* command : {"gzip", "zstd -q"}) {
    const std::string one = read_file(compress(sample(100'000), command));
    keep(one + one + one);
    EXPECT_EQ(drain(dir_ / "packed"), sample(100'000) + sample(100'000) + sample(100'000));
  }
  keep(read_file(compress("text", "gzip")) + std::string(1000, '\0'));
  EXPECT_EQ(drain(dir_ / "packed"), "text");
}

TEST_F(InputStreamTest, RefusesEveryCutAndReportsFlippedBytes) {
  for (const char* command : {"gzip", "zstd -q"}) {
    const std::string whole = read_file(compress(sample(2000), command));
    for (size_t n = 7; n < whole.size(); n += 11) {
      keep(whole.substr(0, n));
      EXPECT_NE(error_of(dir_ / "packed", ErrorKind::kData).find("too early"), std::string::npos)
          << command << n;
    }
    std::string flipped = whole;
    flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 0x10);
    keep(flipped);
    error_of(dir_ / "packed", ErrorKind::kData);
    keep(whole + "junk that is no frame");
    EXPECT_NE(error_of(dir_ / "packed", ErrorKind::kData).find("damaged"), std::string::npos);
  }
}

TEST_F(InputStreamTest, RefusesOtherCompressionsByNameWithTheRemedy) {
  keep("BZh91AY&SY...");
  EXPECT_NE(error_of(dir_ / "packed", ErrorKind::kData)
                .find("bzip2 -dc " + dir_ / "packed" + " | megalith-preprocess --input -"),
            std::string::npos);
  keep(
      std::string("\xfd"
                  "7zXZ\0\0",
                  7));
  EXPECT_NE(error_of(dir_ / "packed", ErrorKind::kData).find("xz -dc " + dir_ / "packed" + " |"),
            std::string::npos);
}

TEST_F(InputStreamTest, NamesWhatIsNotAFile) {
  EXPECT_NE(error_of(dir_ / "absent", ErrorKind::kNoInput).find("No such file"), std::string::npos);
  EXPECT_NE(error_of(dir_.path().string(), ErrorKind::kNoInput).find("is a folder"), std::string::npos);
}

TEST_F(InputStreamTest, GivesUpAPipeWhenInterrupted) {
  const std::string pipe = dir_ / "pipe";
  ASSERT_EQ(test::run_command("mkfifo " + pipe).code, 0);
  ASSERT_EQ(test::run_command("sleep 20 > " + pipe + " & echo $! > " + dir_ / "pid").code, 0);
  const Interrupt interrupt;
  std::thread later([&] { interrupt.set(); });
  InputStream stream(pipe, &interrupt);
  char byte = 0;
  EXPECT_EQ(stream.read(&byte, 1), 0U);
  later.join();
  EXPECT_EQ(test::run_command("kill $(cat " + dir_ / "pid" + ")").code, 0);
}

}  // namespace
}  // namespace megalith
