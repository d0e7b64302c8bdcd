#pragma once

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "libcore/io/streams/input_stream.h"
#include "tests/data/shards/member_files.h"
#include "tests/support/files.h"

namespace megalith::test {

/// Text that compresses to about a quarter and does not repeat itself.
inline std::string packed_sample(size_t bytes, unsigned seed = 3) {
  std::mt19937 random(seed);
  std::string text;
  while (text.size() < bytes) text += "word" + std::to_string(random() % 1000) + ' ';
  text.resize(bytes);
  return text;
}

/// Files compressed by tools of the system, in a folder of their own.
class PackedFiles {
 public:
  /// Returns the path of a file with what `command` makes of `text`.
  std::string pack(const std::string& text, const std::string& command) {
    const std::string path = dir_ / std::to_string(++made_);
    write_file(path + ".plain", text);
    EXPECT_EQ(run_command(command + " < " + path + ".plain > " + path).code, 0) << command;
    return path;
  }
  std::string keep(const std::string& contents) {
    const std::string path = dir_ / std::to_string(++made_);
    write_file(path, contents);
    return path;
  }

 private:
  TempDir dir_;
  int made_ = 0;
};

/// What a reader gave, up to its end or its error, and that error's message.
struct Reading {
  std::string text, error;
  bool operator==(const Reading&) const = default;
};

/// Reads to the end.
template <class Source>
Reading drain(Source& source, size_t room = 50000) {
  Reading reading;
  std::string buffer(room, '\0');
  try {
    while (const size_t n = source.read(buffer.data(), buffer.size())) reading.text.append(buffer, 0, n);
  } catch (const Error& error) {
    reading.error = error.what();
  }
  return reading;
}

/// A way to compress a text to several pieces.
struct Packing {
  std::string name, contents;
};

/// `text`, which has more than 400,000 bytes, in each format that has pieces.
inline std::vector<Packing> packings(PackedFiles& files, const std::string& text) {
  const std::string half = text.substr(0, text.size() / 2), rest = text.substr(half.size());
  const auto twice = [&](const std::string& command) {
    return read_file(files.pack(half, command)) + read_file(files.pack(rest, command));
  };
  return {{"xz", read_file(files.pack(text, "xz -0 --block-size=100000"))},
          {"xz streams", twice("xz -0 --check=crc32")},
          {"bzip2", read_file(files.pack(text, "bzip2 -1"))},
          {"bzip2 streams", twice("bzip2 -1")},
          {"zstd frames", twice("zstd -q -1")},
          {"zstd frames without sums", twice("zstd -q -1 --no-check")},
          {"seekable zstd", seekable_zstd(text, 100'000)},
          {"BGZF", bgzf(text, 60'000)}};
}

}  // namespace megalith::test
