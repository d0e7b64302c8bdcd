#include "libcore/io/files/scratch_file.h"

#include <cstring>
#include <filesystem>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

std::vector<uint32_t> read_back(const ScratchFile& file) {
  std::vector<uint32_t> values;
  file.read([&](std::span<const std::byte> block) {
    const size_t before = values.size();
    values.resize(before + block.size() / sizeof(uint32_t));
    std::memcpy(values.data() + before, block.data(), block.size());
  });
  return values;
}

// 262144 values of 4 bytes fill the buffer in memory exactly.
TEST(ScratchFile, GivesBackWhatWasPutAside) {
  for (const uint32_t count : {0U, 1U, 262143U, 262144U, 262145U, 1'000'003U}) {
    const test::TempDir dir;
    ScratchFile file(dir.path().string());
    std::vector<uint32_t> expected;
    for (uint32_t i = 0; i < count; ++i) {
      expected.push_back(i * 2654435761U);
      file.append(&expected.back(), sizeof(uint32_t));
    }
    EXPECT_EQ(file.size(), 4U * count);
    EXPECT_EQ(read_back(file), expected);
    file.append(&count, sizeof count);  // it must be possible to append after reading, and to read again
    expected.push_back(count);
    EXPECT_EQ(read_back(file), expected);
    EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  }
}

TEST(ScratchFile, TakesMoreThanItsMemoryAtOnce) {
  const test::TempDir dir;
  ScratchFile file(dir.path().string());
  std::vector<uint32_t> values(700'001);
  for (uint32_t i = 0; i < values.size(); ++i) values[i] = i;
  file.append(values.data(), values.size() * sizeof(uint32_t));
  EXPECT_EQ(read_back(file), values);
}

TEST(ScratchFile, NamesTheFolderThatItCannotUse) {
  ScratchFile file("/nonexistent/folder");
  const std::vector<char> bytes(1 << 20);
  try {
    file.append(bytes.data(), bytes.size());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_TRUE(std::string(error.what()).starts_with("/nonexistent/folder: cannot create")) << error.what();
  }
}

TEST(ScratchFile, ContinuesBehindWhatWasSaved) {
  for (const uint32_t kept : {0U, 1U, 262144U, 300'000U}) {
    const test::TempDir dir;
    std::vector<uint32_t> expected;
    const auto add = [&](ScratchFile& file, uint32_t count) {
      for (uint32_t i = 0; i < count; ++i) {
        expected.push_back(i * 2654435761U);
        file.append(&expected.back(), sizeof(uint32_t));
      }
    };
    KeptBytes saved;
    {
      ScratchFile file(dir / "kept", {});
      add(file, kept);
      saved = file.save();
      add(file, 270'000);  // these are not saved: the process is killed
    }
    expected.resize(kept);
    EXPECT_EQ(saved.bytes, 4U * kept);
    ScratchFile file(dir / "kept", saved);
    EXPECT_EQ(read_back(file), expected);
    add(file, 270'001);
    EXPECT_EQ(read_back(file), expected);
    EXPECT_THROW(ScratchFile(dir / "kept", {8'000'000, saved.hash}), Error);
    if (kept == 0) continue;
    std::string bytes = read_file(dir / "kept");
    for (const size_t at : {size_t{0}, size_t{2} * kept, size_t{4} * kept - 1}) {
      bytes[at] = static_cast<char>(bytes[at] ^ 1);
      write_file(dir / "kept", bytes);
      EXPECT_THROW(ScratchFile(dir / "kept", saved), Error) << at;
      bytes[at] = static_cast<char>(bytes[at] ^ 1);
    }
  }
}

}  // namespace
}  // namespace megalith
