#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/base/byte_buffer.h"
#include "libcore/base/input_stream.h"

namespace megalith {

/// Some whole lines of an input, in memory of their own, which a worker may change.
class LineChunk {
 public:
  size_t lines() const { return ends_.size(); }
  /// The line without its end, and in the first line of an input without its byte order mark.
  std::span<char> line(size_t i);
  /// As in the input, with its end; a newline is not added to a last line that has none.
  std::string_view raw_line(size_t i) const;
  /// Bytes between the beginnings of raw_line(i) and line(i): 3 behind a byte order mark, else 0.
  size_t skipped(size_t i) const { return i == 0 ? mark_ : 0; }
  size_t bytes() const { return buffer_.size(); }
  size_t capacity() const { return buffer_.capacity(); }

 private:
  friend class LineReader;
  size_t begin(size_t i) const { return i == 0 ? 0 : ends_[i - 1]; }
  ByteBuffer buffer_;
  std::vector<size_t> ends_;  // behind each line's end
  size_t mark_ = 0;
};

/// When a chunk is closed: at the end of the line that reaches either.
struct LineLimits {
  size_t bytes = size_t{1} << 20;
  size_t lines = 4096;
};

/// Cuts an input into chunks of whole lines as Python's text files do: \n, \r\n and a lone \r end a line, a
/// last line needs no end. The bytes themselves are not looked at. Memory: one chunk and a window of 256 KiB.
class LineReader {
 public:
  LineReader(std::string path, LineLimits limits, const Interrupt* interrupt = nullptr);

  /// The next lines, at least one; false at the end of the input. `grow` is called before the chunk becomes
  /// larger than the limit (by one long line) with the size that it will have at least; it may wait, or
  /// throw.
  bool next(LineChunk& chunk, const std::function<void(size_t)>& grow);

  const InputStream& input() const { return input_; }

 private:
  bool refill();
  size_t scan_window(LineChunk& chunk);
  bool full(const LineChunk& chunk, size_t bytes) const;

  InputStream input_;
  LineLimits limits_;
  std::vector<char> storage_;
  std::string_view window_;  // bytes read and not yet in a chunk
  bool carriage_return_ =
      false;  // the byte before the window is a \r whose line is not closed: a \n may follow
  bool at_start_ = true;
};

}  // namespace megalith
