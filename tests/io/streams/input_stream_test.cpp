#include "libcore/io/streams/input_stream.h"

#include <csignal>
#include <random>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "libcore/io/streams/stop_signal.h"
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

/// Text that compresses to about a quarter, so that the decoders' own buffers matter.
std::string sample(size_t bytes) {
  std::mt19937 random(3);
  std::string text;
  while (text.size() < bytes) text += "word" + std::to_string(random() % 100) + ' ';
  text.resize(bytes);
  return text;
}

class InputStreamTest : public testing::Test {
 protected:
  /// Writes `text` to a file and compresses it with a tool of the system. Returns the path of the compressed
  /// file.
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

TEST_F(InputStreamTest, ReadsEveryFormat) {
  for (const char* command :
       {"gzip -1", "zstd -q -3", "zstd -q --no-check", "bzip2", "bzip2 -1", "xz -0", "xz -9"}) {
    for (const size_t bytes : {0U, 1U, 1000U, 800'000U}) {
      SCOPED_TRACE(command);
      const std::string path = compress(sample(bytes), command);
      EXPECT_EQ(drain(path), sample(bytes));
      EXPECT_EQ(drain(path, 4096), sample(bytes));
      EXPECT_EQ(drain(path, 8'000'000), sample(bytes));
    }
  }
}

// A line without end, a long skip and endless padding must all end with a signal.
TEST_F(InputStreamTest, StopsAtASignal) {
  for (const char* command : {"cat", "gzip", "zstd -q", "bzip2", "xz"}) {
    SCOPED_TRACE(command);
    const std::string path = compress(sample(800'000), command);
    const StopSignal stop;
    InputStream read(path), skipped(path);
    std::string out(1000, '\0');
    EXPECT_GT(read.read(out.data(), out.size()), 0U);
    std::raise(SIGTERM);
    EXPECT_THROW((void)read.read(out.data(), out.size()), Stopped);
    if (command == std::string("cat")) continue;  // seeks
    EXPECT_THROW(skipped.skip(700'000), Stopped);
  }
}

TEST_F(InputStreamTest, IsToldToBeCompressedByItsFirstBytes) {
  for (const char* command : {"gzip", "zstd -q", "bzip2", "xz"})
    EXPECT_TRUE(is_compressed(compress("text", command))) << command;
  for (const char* text : {"", "B", "{\"text\": \"a\"}\n"}) {
    keep(text);
    EXPECT_FALSE(is_compressed(dir_ / "packed")) << text;
  }
  EXPECT_FALSE(is_compressed(dir_ / "absent"));
}

/// Reads a part of a file.
std::string part_of(const std::string& path, const StreamPart& part, size_t room = 50000) {
  InputStream stream(path, nullptr, part);
  std::string out, buffer(room, '\0');
  while (const size_t n = stream.read(buffer.data(), buffer.size())) out.append(buffer, 0, n);
  return out;
}

TEST_F(InputStreamTest, ReadsAPartOfAPlainFile) {
  const std::string text = sample(700'000);
  write_file(dir_ / "plain", text);
  for (const size_t room : {7U, 4096U, 1'000'000U}) {
    EXPECT_EQ(part_of(dir_ / "plain", {.begin = {699'000, 0}}, room), text.substr(699'000));
    EXPECT_EQ(part_of(dir_ / "plain", {.end = StreamPlace{5000, 0}}, room), text.substr(0, 5000));
  }
  EXPECT_EQ(part_of(dir_ / "plain", {{300'001, 0}, StreamPlace{300'002, 0}}), text.substr(300'001, 1));
  EXPECT_EQ(part_of(dir_ / "plain", {{300'001, 0}, StreamPlace{300'001, 0}}), "");
  EXPECT_EQ(part_of(dir_ / "plain", {{700'000, 0}, StreamPlace{700'000, 0}}), "");
  InputStream part(dir_ / "plain", nullptr, {{100'000, 0}, StreamPlace{200'000, 0}});
  part.skip(99'990);
  std::string rest(100, '\0');
  EXPECT_EQ(part.read(rest.data(), rest.size()), 10U);
  EXPECT_EQ(rest.substr(0, 10), text.substr(199'990, 10));
  EXPECT_EQ(part.consumed(), 100'000U);
}

TEST_F(InputStreamTest, ReadsAPartBetweenMembers) {
  for (const char* command : {"gzip", "zstd -q", "bzip2", "xz"}) {
    SCOPED_TRACE(command);
    const std::string text = sample(300'000), member = read_file(compress(text, command));
    keep(member + member + member);
    const uint64_t size = member.size();
    for (const size_t room : {1000U, 1'000'000U}) {
      EXPECT_EQ(part_of(dir_ / "packed", {.begin = {size, 17}}, room), text.substr(17) + text);
      EXPECT_EQ(part_of(dir_ / "packed", {{size, 17}, StreamPlace{2 * size, 5}}, room),
                text.substr(17) + text.substr(0, 5));
      EXPECT_EQ(part_of(dir_ / "packed", {{0, 250'000}, StreamPlace{0, 250'009}}, room),
                text.substr(250'000, 9));
      // an end where a member begins
      EXPECT_EQ(part_of(dir_ / "packed", {.end = StreamPlace{size, 0}}, room), text);
      EXPECT_EQ(part_of(dir_ / "packed", {{size, 0}, StreamPlace{3 * size, 0}}, room), text + text);
      // an end that lies behind more than one member
      EXPECT_EQ(part_of(dir_ / "packed", {{size, 0}, StreamPlace{size, 300'003}}, room),
                text + text.substr(0, 3));
      EXPECT_EQ(part_of(dir_ / "packed", {{size, 300'003}, StreamPlace{2 * size, 3}}, room), "");
      EXPECT_EQ(part_of(dir_ / "packed", {.begin = {3 * size, 0}}, room), "");
    }
  }
}

TEST_F(InputStreamTest, RefusesAPartThatIsNoLongerThere) {
  keep(sample(1000));
  const auto refusal = [&](const StreamPart& part, const std::string& path) {
    try {
      part_of(path, part);
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::kInternal;
  };
  EXPECT_EQ(refusal({.begin = {1001, 0}}, dir_ / "packed"), ErrorKind::kData);
  EXPECT_EQ(refusal({.end = StreamPlace{1001, 0}}, dir_ / "packed"), ErrorKind::kData);
  EXPECT_EQ(refusal({.begin = {1, 0}}, "/dev/zero"), ErrorKind::kUsage);
  const std::string member = read_file(compress("text", "gzip"));
  keep(member + member);
  EXPECT_EQ(refusal({.begin = {member.size(), 5}}, dir_ / "packed"), ErrorKind::kData);
  EXPECT_EQ(refusal({.end = StreamPlace{member.size(), 5}}, dir_ / "packed"), ErrorKind::kData);
}

TEST_F(InputStreamTest, ReadsHighlyCompressedData) {
  const std::string zeros(5'000'000, '0');
  EXPECT_EQ(drain(compress(zeros, "gzip -9")), zeros);
  EXPECT_EQ(drain(compress(zeros, "zstd -q -19")), zeros);
  EXPECT_EQ(drain(compress(zeros, "bzip2")), zeros);
  EXPECT_EQ(drain(compress(zeros, "xz")), zeros);
}

TEST_F(InputStreamTest, ReadsAllMembersAndFrames) {
  for (const char* command : {"gzip", "zstd -q", "bzip2", "xz"}) {
    const std::string one = read_file(compress(sample(100'000), command));
    keep(one + one + one);
    EXPECT_EQ(drain(dir_ / "packed"), sample(100'000) + sample(100'000) + sample(100'000));
  }
  for (const char* command : {"gzip", "xz"}) {
    keep(read_file(compress("text", command)) + std::string(1000, '\0'));
    EXPECT_EQ(drain(dir_ / "packed"), "text");
  }
}

TEST_F(InputStreamTest, RefusesEveryTruncationAndReportsFlippedBytes) {
  for (const char* command : {"gzip", "zstd -q", "bzip2", "xz"}) {
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

// An xz window above the memory limit must be refused before it is allocated.
TEST_F(InputStreamTest, RefusesAnXzWindowThatIsTooLarge) {
  const std::string path = compress(sample(100), "xz --lzma2=dict=256MiB");
  EXPECT_NE(error_of(path, ErrorKind::kData).find("window of more than 64 MiB"), std::string::npos);
}

TEST_F(InputStreamTest, SkipsDecompressedBytes) {
  for (const char* command : {"cat", "gzip", "zstd -q", "bzip2", "xz"}) {
    InputStream stream(compress(sample(700'000), command));
    stream.skip(600'001);
    std::string rest(200'000, '\0');
    size_t n = 0;
    while (const size_t more = stream.read(rest.data() + n, rest.size() - n)) n += more;
    EXPECT_EQ(rest.substr(0, n), sample(700'000).substr(600'001)) << command;
    EXPECT_THROW(InputStream(dir_ / "packed").skip(700'001), Error);
  }
}

TEST(UncompressedName, LeavesOutTheExtensionOfACompression) {
  for (const char* path :
       {"a.b/x.jsonl", "a.b/x.jsonl.gz", "a.b/x.jsonl.zst", "a.b/x.jsonl.bz2", "a.b/x.jsonl.xz"})
    EXPECT_EQ(uncompressed_name(path), "a.b/x.jsonl") << path;
  EXPECT_EQ(uncompressed_name("x"), "x");
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
