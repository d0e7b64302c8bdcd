#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "libcore/io/files/file.h"
#include "tests/support/environment.h"
#include "tests/text/fixtures.h"

namespace megalith::test {

/// Two tokenizers of one file, the second from what the first reading kept. `padding` is appended to a copy
/// of the file, so that it is large enough to be kept; readers must ignore it.
template <class Read>
auto read_twice(const std::string& file, const std::string& padding, const Read& read) {
  const TempDir dir;
  const Variable folder("MEGALITH_CACHE_DIR", dir / "cache");
  const std::string path = dir / std::filesystem::path(file).filename().string();
  write_file(path, read_file(file) + padding);
  auto first = read(path);
  std::filesystem::path kept;
  for (const auto& entry : std::filesystem::directory_iterator(dir / "cache")) kept = entry.path();
  EXPECT_FALSE(kept.empty()) << path;
  const auto written = std::filesystem::last_write_time(kept);
  auto later = read(path);
  EXPECT_EQ(std::filesystem::last_write_time(kept), written);
  EXPECT_EQ(later->hash(), first->hash());
  EXPECT_EQ(later->vocab_size(), first->vocab_size());
  return std::pair(std::move(first), std::move(later));
}

}  // namespace megalith::test
