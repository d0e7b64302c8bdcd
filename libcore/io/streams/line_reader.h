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

/// A place in an input; line and byte count from 1.
struct TextPlace {
  uint64_t line = 1, byte = 1;
  bool after_return = false;  // the last character was \r: a \n that follows belongs to the same line end
  /// Moves past `text`, with the line ends of Python's text files.
  void advance(std::string_view text);
};

/// The position of a reader in an input, from which another one can continue.
struct ReaderMark {
  enum Mode { kLines, kElement, kNextElement, kAfterArray };  // what comes next
  uint64_t bytes = 0;                                         // decompressed bytes before the position
  TextPlace place{};
  Mode mode = kLines;
};

/// Whole lines of an input (or elements of its JSON array). The batch owns their memory, so that a worker may
/// change them.
class LineBatch {
 public:
  size_t lines() const { return ends_.size(); }
  /// The line without its end and, in the first line of an input, without its byte order mark.
  std::span<char> line(size_t i);
  /// The line as it is in the input, with its line end; a last line without a newline gets none. An array
  /// element comes without its comma, but with the white space (newlines, too) after it.
  std::string_view raw_line(size_t i) const;
  /// The distance of line(i) from raw_line(i): 3 after a byte order mark, else 0.
  size_t skipped(size_t i) const { return i == 0 ? mark_ : 0; }
  /// The place in the input of byte `offset` of raw_line(i). The line must not have been changed.
  TextPlace place(size_t i, size_t offset) const;
  bool from_array() const { return !places_.empty(); }
  size_t bytes() const { return buffer_.size(); }
  size_t capacity() const { return buffer_.capacity(); }
  /// Takes away the memory of the lines, so that another batch can reuse it. lines() and end() stay valid.
  ByteBuffer take_memory() { return std::exchange(buffer_, {}); }
  /// Gives the batch memory for the lines that will be read next.
  void use_memory(ByteBuffer memory) { buffer_ = std::move(memory); }
  /// The position of the reader after this batch.
  const ReaderMark& end() const { return end_; }

 private:
  friend class LineReader;
  void clear();
  size_t begin(size_t i) const { return i == 0 ? 0 : ends_[i - 1]; }
  ByteBuffer buffer_;
  std::vector<size_t> ends_;       // for each line, the offset in buffer_ at which it ends
  TextPlace first_;                // where the first line begins
  std::vector<TextPlace> places_;  // where each element begins; empty for lines
  size_t mark_ = 0;
  ReaderMark end_;
};

/// Limits of a batch. It ends with the line that reaches `bytes` or `lines`.
struct LineLimits {
  size_t bytes = size_t{1} << 20;
  size_t lines = 4096;
  size_t longest = 0;  // about how many bytes of a line or element are kept; 0: all
  size_t refused = 0;  // about how many bytes of one, kept or not, are too many (kData); 0: no limit
};

/// The default for LineLimits::refused. No text has such long lines, but a device or a decompression bomb
/// does, and would take all memory.
inline constexpr size_t kLongestLine = size_t{1} << 28;

/// Splits an input into batches of whole lines, as Python's text files do: \n, \r\n and a lone \r end a line,
/// and the last line needs no end. If the first character of the input is "[", it begins with a JSON array,
/// whose elements take the place of lines; after the array, lines follow. The bytes themselves are not
/// checked. Of a line longer than LineLimits::longest, the batch keeps a little more than that, and the line
/// end. Memory: one batch and a window of 256 KiB. Throws kData for an array without an end and for a line or
/// element longer than LineLimits::refused.
class LineReader {
 public:
  /// Begins at `from`, which an earlier reader of the same input returned.
  LineReader(std::string path, LineLimits limits, const Interrupt* interrupt = nullptr, ReaderMark from = {});

  /// Reads the next lines, at least one; false at the end of the input. Before a long line makes the batch
  /// larger than LineLimits::bytes, `grow` is called with a lower bound of the batch's new size; it may wait
  /// or throw.
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
  ByteBuffer storage_;       // holds the bytes of window_
  std::string_view window_;  // bytes read and not yet in a batch
  uint64_t read_ = 0;        // bytes of the input up to the end of the window
  TextPlace place_;          // where the window begins; with lines, where the batch begins
  ReaderMark::Mode mode_ = ReaderMark::kLines;
  // The byte before the window is a \r whose line is not finished yet: a \n may follow.
  bool carriage_return_ = false;
  bool at_start_ = true;
  size_t left_out_ = 0;  // bytes of the current line or element that are not kept
  // State of the element that is being read.
  bool in_element_ = false, in_string_ = false, escaped_ = false;
  size_t depth_ = 0;
};

}  // namespace megalith
