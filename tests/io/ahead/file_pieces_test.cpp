#include "libcore/io/ahead/file_pieces.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/hash/crc32.h"
#include "libcore/io/streams/stop_signal.h"
#include "tests/io/ahead/packed_files.h"

namespace megalith {
namespace {

using test::drain;
using test::packed_sample;
using test::Reading;

std::vector<FilePiece> all_pieces(FilePieces& pieces) {
  std::vector<FilePiece> all;
  while (const auto piece = pieces.next()) all.push_back(*piece);
  return all;
}

/// What the pieces of a file hold, each read by itself, the last one first.
std::vector<std::string> texts_of(const std::string& path) {
  const auto pieces = pieces_of(path);
  if (!pieces) return {};
  std::vector<std::string> texts;
  const std::vector<FilePiece> all = all_pieces(*pieces);
  for (auto piece = all.rbegin(); piece != all.rend(); ++piece) {
    const Reading reading = drain(*pieces->open(*piece), 7000);
    EXPECT_EQ(reading.error, "");
    texts.push_back(reading.text);
  }
  std::reverse(texts.begin(), texts.end());
  return texts;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text;
  return all;
}

TEST(FilePieces, HoldTheTextOfTheFile) {
  test::PackedFiles files;
  const std::string text = packed_sample(3'000'000);
  for (const auto& [name, contents] : test::packings(files, text)) {
    SCOPED_TRACE(name);
    const std::vector<std::string> texts = texts_of(files.keep(contents));
    EXPECT_GT(texts.size(), 1U);
    EXPECT_TRUE(joined(texts) == text);
  }
}

TEST(FilePieces, AreTheBlocksOfXz) {
  test::PackedFiles files;
  const std::string text = packed_sample(250'000);
  const std::string path = files.pack(text, "xz --block-size=100000");
  EXPECT_EQ(texts_of(path),
            (std::vector{text.substr(0, 100'000), text.substr(100'000, 100'000), text.substr(200'000)}));
  // the padding between and behind streams is zeros, four at a time
  const std::string stream = read_file(path), zeros(8, '\0');
  EXPECT_EQ(joined(texts_of(files.keep(stream + zeros + stream + zeros + zeros))), text + text);
  EXPECT_EQ(pieces_of(files.keep(stream + std::string(6, '\0'))), nullptr);
}

// Blocks of bzip2 -1 hold 100,000 bytes less 19.
TEST(FilePieces, AreTheBlocksOfBzip2) {
  test::PackedFiles files;
  const std::string text = packed_sample(250'000);
  const std::vector<std::string> texts = texts_of(files.pack(text, "bzip2 -1"));
  ASSERT_EQ(texts.size(), 3U);
  EXPECT_EQ(texts[0], text.substr(0, 99'981));
  EXPECT_EQ(joined(texts), text);
  const std::string empty = read_file(files.pack("", "bzip2")), some = read_file(files.pack("some", "bzip2"));
  EXPECT_EQ(texts_of(files.keep(empty)), std::vector<std::string>{});
  EXPECT_EQ(joined(texts_of(files.keep(empty + some + empty + empty + some))), "somesome");
}

TEST(FilePieces, AreNotThereWhereOnlyTheWholeCanBeRead) {
  test::PackedFiles files;
  const std::string text = packed_sample(250'000);
  for (const char* command : {"gzip", "zstd -q", "xz"})
    EXPECT_EQ(pieces_of(files.pack(text, command)), nullptr) << command;
  for (const char* contents : {"", "{\"text\": \"a\"}\n", "BZ",
                               "\xfd"
                               "7zXZ"})
    EXPECT_EQ(pieces_of(files.keep(contents)), nullptr) << contents;
  EXPECT_EQ(pieces_of("/absent.bz2"), nullptr);
}

// The index of xz and the sums of bzip2's streams are part of what a decoder of the whole file checks.
TEST(FilePieces, AreNotThereWhereWhatSurroundsThemIsDamaged) {
  test::PackedFiles files;
  const std::string text = packed_sample(250'000);
  const std::string xz = read_file(files.pack(text, "xz -0 --block-size=100000")),
                    bzip2 = read_file(files.pack(text, "bzip2 -1"));
  for (const size_t behind : {1, 5, 9, 12, 15, 20, 30}) {
    std::string damaged = xz;
    damaged[xz.size() - behind] = static_cast<char>(damaged[xz.size() - behind] ^ 4);
    EXPECT_EQ(pieces_of(files.keep(damaged)), nullptr) << behind;
  }
  std::string damaged = bzip2;
  damaged[bzip2.size() - 3] = static_cast<char>(damaged[bzip2.size() - 3] ^ 4);  // in the sum of the stream
  const auto pieces = pieces_of(files.keep(damaged));
  EXPECT_THROW(all_pieces(*pieces), Error);
  EXPECT_THROW(all_pieces(*pieces_of(files.keep(bzip2 + "junk"))), Error);
}

// A block of two megabytes ends the search for the next: a terabyte of zeros would be read for minutes.
TEST(FilePieces, AreNotSearchedForInAllOfALongFile) {
  test::PackedFiles files;
  const std::string bzip2 = read_file(files.pack(packed_sample(250'000), "bzip2 -1"));
  const std::string path = files.keep(bzip2.substr(0, bzip2.size() / 2));
  std::filesystem::resize_file(path, uint64_t{1} << 40);
  const auto pieces = pieces_of(path);
  ASSERT_NE(pieces, nullptr);
  EXPECT_THROW(all_pieces(*pieces), Error);
}

std::string number(uint32_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string with_crc(const std::string& bytes) {
  return bytes + number(crc32(0, bytes.data(), bytes.size()));
}

/// A stream of xz whose index has `blocks` blocks of no bytes, which take no bytes of the file.
std::string xz_of_nothing(unsigned char blocks) {
  const std::string flags("\0\1", 2);
  std::string index = std::string(1, '\0') + static_cast<char>(blocks) + std::string(2U * blocks, '\0');
  index.resize((index.size() + 3) / 4 * 4);
  const std::string head = '\xfd' + std::string("7zXZ\0", 5) + with_crc(flags),
                    foot = number(static_cast<uint32_t>(index.size() / 4)) + flags;
  return head + with_crc(index) + number(crc32(0, foot.data(), foot.size())) + foot + "YZ";
}

TEST(FilePieces, AreNotBlocksOfXzWithoutBytes) {
  test::PackedFiles files;
  EXPECT_EQ(pieces_of(files.keep(xz_of_nothing(0))), nullptr);
  EXPECT_EQ(pieces_of(files.keep(xz_of_nothing(3))), nullptr);
}

TEST(FilePieces, EndAtASignal) {
  test::PackedFiles files;
  const auto pieces = pieces_of(files.pack(packed_sample(250'000), "bzip2 -1"));
  const auto first = pieces->next();
  ASSERT_TRUE(first.has_value());
  const auto source = pieces->open(*first);
  const StopSignal stop;
  std::raise(SIGTERM);
  char byte = 0;
  EXPECT_THROW((void)source->read(&byte, 1), Stopped);
}

}  // namespace
}  // namespace megalith
