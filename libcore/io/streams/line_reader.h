#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/base/byte_buffer.h"
#include "libcore/io/streams/input_stream.h"

namespace megalith {

/// A place in an input; both count from 1.
struct TextPlace {
  uint64_t line = 1, byte = 1;
  bool after_return = false;  // after a \r, whose \n may follow
  /// Moves past `text`, with the line ends of Python's text files.
  void advance(std::string_view text);
};

/// The position of a reader in an input, from which another one can continue.
struct ReaderMark {
  enum Mode { kLines, kElement, kNextElement, kAfterArray };  // what comes next
  uint64_t bytes = 0;                                         // decompressed bytes before it
  TextPlace place{};
  Mode mode = kLines;
};

/// Whole lines of an input (or elements of its array), in memory of their own, so that a worker may change
/// them.
class LineBatch {
 public:
  size_t lines() const { return ends_.size(); }
  /// The line without its end and, in the first line of an input, without its byte order mark.
  std::span<char> line(size_t i);
  /// As in the input, with its end; no newline is added to a last line without one. An element has no comma,
  /// but the blanks (also newlines) after it.
  std::string_view raw_line(size_t i) const;
  /// The distance of line(i) from raw_line(i): 3 after a byte order mark, else 0.
  size_t skipped(size_t i) const { return i == 0 ? mark_ : 0; }
  /// The place in the input of byte `offset` of raw_line(i), which is as it was read.
  TextPlace place(size_t i, size_t offset) const;
  bool from_array() const { return !places_.empty(); }
  size_t bytes() const { return buffer_.size(); }
  size_t capacity() const { return buffer_.capacity(); }
  /// Takes the memory of the lines, so that another batch can reuse it; lines() and end() stay.
  ByteBuffer take_memory() { return std::exchange(buffer_, {}); }
  /// For lines that will be read.
  void use_memory(ByteBuffer memory) { buffer_ = std::move(memory); }
  /// The position of the reader after this batch.
  const ReaderMark& end() const { return end_; }

 private:
  friend class LineReader;
  void clear();
  size_t begin(size_t i) const { return i == 0 ? 0 : ends_[i - 1]; }
  ByteBuffer buffer_;
  std::vector<size_t> ends_;       // after the end of each line
  TextPlace first_;                // where the first line begins
  std::vector<TextPlace> places_;  // of the elements; empty for lines
  size_t mark_ = 0;
  ReaderMark end_;
};

/// A batch is closed at the end of the line that reaches either limit.
struct LineLimits {
  size_t bytes = size_t{1} << 20;
  size_t lines = 4096;
  size_t longest = 0;  // about how many bytes of a line or element are kept; 0: all
  size_t refused = 0;  // about how many bytes of one, kept or not, are too many (kData); 0: no limit
};

/// LineLimits::refused if no other one is given: no text is so long, but a device or a decompression bomb is,
/// and would take all memory.
inline constexpr size_t kLongestLine = size_t{1} << 28;

/// Splits an input into batches of whole lines, as Python's text files do: \n, \r\n and a lone \r end a line,
/// and the last line needs no end. An input whose first character is "[" is one JSON array, whose elements
/// take the place of lines; after it lines follow again. The bytes themselves are not checked. A line
/// that is longer than the limit keeps a little more than the limit, and its end. Memory: one batch and a
/// window of 256 KiB. Throws kData for an array without an end, and at LineLimits::refused.
class LineReader {
 public:
  /// Begins at `from`, which an earlier reader of the same input returned.
  LineReader(std::string path, LineLimits limits, const Interrupt* interrupt = nullptr, ReaderMark from = {});

  /// Reads the next lines, at least one; false at the end of the input. Before the batch becomes larger than
  /// the limit (through one long line), `grow` is called with the size that it will have at least; it may
  /// wait, or throw.
  bool next(LineBatch& batch, const std::function<void(size_t)>& grow);

  /// Changes LineLimits::bytes for the batches that follow.
  void close_batches_at(size_t bytes) { limits_.bytes = bytes; }

  const InputStream& input() const { return input_; }

 private:
  using Grow = std::function<void(size_t)>;
  bool refill(size_t room);
  bool read_more(LineBatch& batch);
  bool read_lines(LineBatch& batch);
  void look_for_array();
  size_t scan_window(LineBatch& batch);
  bool full(const LineBatch& batch, size_t bytes) const;
  bool enough_of_line(const LineBatch& batch) const;
  void take_lines(LineBatch& batch, const Grow& grow);
  void take_from_array(LineBatch& batch, const Grow& grow);
  void take_element(LineBatch& batch, const Grow& grow);
  void take_separator();
  void refuse_separator(LineBatch& batch);
  void leave_array_line();
  size_t scan_element();
  std::string_view take(size_t bytes);
  void append(LineBatch& batch, std::string_view bytes, const Grow& grow) const;
  void refuse_long_line(const LineBatch& batch, size_t bytes) const;
  void leave_out(const LineBatch& batch, size_t bytes);
  void at_end_of_input(LineBatch& batch);
  ReaderMark mark() const;

  InputStream input_;
  LineLimits limits_;
  ByteBuffer storage_;       // of window_
  std::string_view window_;  // bytes read and not yet in a batch
  uint64_t read_ = 0;        // bytes up to the end of the window
  TextPlace place_;          // where the window begins; between lines: where the batch does
  ReaderMark::Mode mode_ = ReaderMark::kLines;
  // The byte before the window is a \r whose line is not closed: a \n may follow.
  bool carriage_return_ = false;
  bool at_start_ = true;
  size_t left_out_ = 0;  // bytes of the current line or element that are not kept
  // State of the element that is being read.
  bool in_element_ = false, in_string_ = false, escaped_ = false;
  size_t depth_ = 0;
};

}  // namespace megalith
