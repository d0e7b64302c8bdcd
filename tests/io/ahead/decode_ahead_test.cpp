#include "libcore/io/ahead/decode_ahead.h"

#include <cctype>
#include <csignal>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/streams/stop_signal.h"
#include "tests/io/ahead/packed_files.h"

namespace megalith {
namespace {

using test::drain;
using test::packed_sample;
using test::Reading;

Reading read_alone(const std::string& path) {
  InputStream stream(path);
  return drain(stream);
}

Reading read_ahead(const std::string& path, const AheadLimits& limits) {
  DecodeAhead ahead({path}, limits);
  ahead.next_file();
  return drain(ahead);
}

const std::vector<AheadLimits> kLimits = {{1, 0},       {1, 1 << 24}, {2, 0},
                                          {2, 1 << 20}, {5, 1 << 22}, {5, 1 << 26}};

TEST(DecodeAhead, KeepsTheOrderOfFilesAndPieces) {
  test::PackedFiles files;
  std::vector<std::string> paths, texts;
  for (const unsigned seed : {1, 2}) {
    const std::string text = packed_sample(1'500'000, seed);
    for (const auto& [name, contents] : test::packings(files, text)) {
      paths.push_back(files.keep(contents));
      texts.push_back(text);
    }
    for (const char* command : {"gzip -1", "zstd -q -1", "xz -0"}) {
      paths.push_back(files.pack(text.substr(0, 700'000), command));
      texts.push_back(text.substr(0, 700'000));
    }
    paths.push_back(files.pack("", "gzip"));
    texts.emplace_back();
  }
  for (const AheadLimits& limits : kLimits) {
    DecodeAhead ahead(paths, limits);
    for (size_t i = 0; i < paths.size(); ++i) {
      ahead.next_file();
      const Reading reading = drain(ahead, 10'000 + 100'000 * i);
      EXPECT_EQ(reading.error, "");
      ASSERT_TRUE(reading.text == texts[i]) << i << " with " << limits.threads << " threads";
      char byte = 0;
      EXPECT_EQ(ahead.read(&byte, 1), 0U);  // the end stays the end
    }
  }
}

TEST(DecodeAhead, SaysHowMuchOfTheFileIsRead) {
  test::PackedFiles files;
  const std::string text = packed_sample(600'000);
  for (const auto& [name, contents] : test::packings(files, text)) {
    SCOPED_TRACE(name);
    DecodeAhead ahead({files.keep(contents)}, {2, 1 << 24});
    ahead.next_file();
    EXPECT_EQ(ahead.consumed(), 0U);
    drain(ahead);
    EXPECT_LE(ahead.consumed(), contents.size());
    EXPECT_GE(ahead.consumed() + 40, contents.size() * 9 / 10);
  }
}

/// An error without its numbers: near which byte the damage is depends on the buffers.
std::string words_of(const std::string& error) {
  std::string words;
  for (const char c : error)
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) words += c;
  return words;
}

/// Whether both readings are of one text, as far as they go: how many bytes come before an error depends on
/// the buffers, too.
bool agree(const Reading& a, const Reading& b) {
  if (a.error.empty() && b.error.empty())
    return a.text == b.text;  // zstd without sums does not see each flip
  return a.text.starts_with(b.text) || b.text.starts_with(a.text);
}

// Whatever is damaged, the bytes before it and the message are those of a stream that reads the file alone.
TEST(DecodeAhead, FindsWhatAStreamFinds) {
  test::PackedFiles files;
  std::mt19937 random(7);
  for (const auto& [name, contents] : test::packings(files, packed_sample(500'000))) {
    for (int trial = 0; trial < 12; ++trial) {
      std::string damaged = contents;
      const size_t at = random() % contents.size();
      if (trial % 3 == 0)
        damaged.resize(at);
      else if (trial % 3 == 1)
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
      else
        damaged += "other data";
      if (damaged.size() < 6) continue;  // it may have no magic number any more
      SCOPED_TRACE(name + ", trial " + std::to_string(trial) + ", byte " + std::to_string(at));
      const std::string path = files.keep(damaged);
      const Reading alone = read_alone(path), ahead = read_ahead(path, {2, 1 << 22});
      EXPECT_EQ(words_of(ahead.error), words_of(alone.error));
      EXPECT_TRUE(agree(ahead, alone)) << ahead.text.size() << " bytes, alone " << alone.text.size();
    }
  }
}

TEST(DecodeAhead, FindsEveryCutThatAStreamFinds) {
  test::PackedFiles files;
  for (const auto& [name, contents] : test::packings(files, packed_sample(410'000))) {
    for (const size_t size : {6, 10, 12, 14}) {
      const std::string path = files.keep(contents.substr(0, size));
      EXPECT_EQ(read_ahead(path, {1, 1 << 20}), read_alone(path)) << name << ' ' << size;
    }
    for (size_t cut = 1; cut < 14; ++cut) {
      const std::string path = files.keep(contents.substr(0, contents.size() - cut));
      const Reading ahead = read_ahead(path, {1, 1 << 20}), alone = read_alone(path);
      EXPECT_EQ(ahead.error, alone.error) << name << " less " << cut;
      EXPECT_TRUE(agree(ahead, alone)) << name << " less " << cut;
    }
  }
  const std::string head = files.keep("BZh9");
  EXPECT_EQ(read_ahead(head, {1, 1 << 20}), read_alone(head));
}

// Runs of one byte make a block of bzip2 larger than what may wait for its end.
TEST(DecodeAhead, ReadsBlocksThatMakeMuch) {
  test::PackedFiles files;
  const std::string zeros(60'000'000, '0');
  EXPECT_TRUE(read_ahead(files.pack(zeros, "bzip2"), {2, 1 << 20}).text == zeros);
}

TEST(DecodeAhead, StaysWithinItsMemory) {
  test::PackedFiles files;
  const std::string text = packed_sample(8'000'000);
  std::vector<std::string> paths;
  for (int i = 0; i < 6; ++i) paths.push_back(files.pack(text, "gzip -1"));
  constexpr uint64_t kBytes = uint64_t{1} << 21, kDecoder = uint64_t{1} << 16;
  DecodeAhead ahead(paths, {3, kBytes});
  uint64_t most = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    ahead.next_file();
    std::string buffer(100'000, '\0');
    while (ahead.read(buffer.data(), buffer.size()) > 0) most = std::max(most, ahead.memory());
  }
  EXPECT_GT(most, 0U);
  EXPECT_LE(most, kBytes + 3 * ((uint64_t{1} << 19) + kDecoder));
}

TEST(DecodeAhead, RefusesAFileThatIsNotThere) {
  test::PackedFiles files;
  const std::string path = files.pack("text", "gzip");
  DecodeAhead ahead({path, "/absent.gz"}, {2, 1 << 20});
  ahead.next_file();
  EXPECT_EQ(drain(ahead).text, "text");
  ahead.next_file();
  EXPECT_NE(drain(ahead).error.find("/absent.gz"), std::string::npos);
}

TEST(DecodeAhead, EndsAtASignal) {
  test::PackedFiles files;
  const std::string text = packed_sample(8'000'000);
  DecodeAhead ahead({files.pack(text, "gzip -1"), files.pack(text, "bzip2 -1")}, {2, 0});
  ahead.next_file();
  const StopSignal stop;
  std::raise(SIGTERM);
  EXPECT_THROW(drain(ahead), Stopped);
}

// The threads must end although nobody reads what they have made.
TEST(DecodeAhead, CanBeGivenUp) {
  test::PackedFiles files;
  const std::string path = files.pack(packed_sample(8'000'000), "gzip -1");
  for (const AheadLimits& limits : kLimits) {
    DecodeAhead ahead({path, path, path}, limits);
    ahead.next_file();
    char byte = 0;
    EXPECT_EQ(ahead.read(&byte, 1), 1U);
    EXPECT_THROW(ahead.next_file(), Error);  // the file before it was not read to its end
  }
}

}  // namespace
}  // namespace megalith
