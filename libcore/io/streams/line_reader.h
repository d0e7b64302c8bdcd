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

/// A place in an input. Lines and bytes are counted from 1.
struct TextPlace {
  uint64_t line = 1, byte = 1;
  bool after_return = false;  // the last character was \r; a \n after it belongs to that line end
  /// Moves past `text`, counting the line ends that Python's text files have.
  void advance(std::string_view text);
};

/// A reader's position in an input. Another reader can continue from there.
struct ReaderMark {
  enum Mode { kLines, kElement, kNextElement, kAfterArray };  // what comes next
  uint64_t bytes = 0;                                         // decompressed bytes before the position
  TextPlace place{};
  Mode mode = kLines;
};

/// The first line end in [at, end), a \n or a \r; `end` if there is none.
const char* find_line_end(const char* at, const char* end);

/// Whole lines of an input (or elements of its JSON array, or whole texts of it, see TextReader). The batch
/// owns their memory, so that a worker may change them.
class LineBatch {
 public:
  size_t lines() const { return ends_.size(); }
  /// The line without its line end; the first line of an input also without its byte order mark. A paragraph
  /// is without its last line end, a whole file is unchanged.
  std::span<char> line(size_t i);
  /// The line as it is in the input, with its line end, if it has one. An array element is without its comma,
  /// but with the white space (including newlines) after it.
  std::string_view raw_line(size_t i) const;
  /// How many bytes line(i) begins after raw_line(i): 3 if there is a byte order mark, else 0.
  size_t skipped(size_t i) const { return i == 0 ? mark_ : 0; }
  /// The place of byte `offset` of raw_line(i) in the input. The line must not have been changed.
  TextPlace place(size_t i, size_t offset) const;
  bool from_array() const { return !places_.empty() && form_ == Form::kLines; }
  /// All lines, as raw_line() has them, end to end.
  std::string_view all() const { return {buffer_.data(), buffer_.size()}; }
  size_t bytes() const { return buffer_.size(); }
  size_t capacity() const { return buffer_.capacity(); }
  /// Takes the lines' memory out of the batch, so that another batch can reuse it. lines() and end() stay
  /// valid.
  ByteBuffer take_memory() { return std::exchange(buffer_, {}); }
  /// Gives the batch memory for the lines that will be read next.
  void use_memory(ByteBuffer memory) { buffer_ = std::move(memory); }
  /// The position of the reader after it read this batch.
  const ReaderMark& end() const { return end_; }

 private:
  friend class LineReader;
  friend class TextReader;
  friend class ParquetRecords;
  enum class Form : uint8_t { kLines, kParagraphs, kFile };  // elements count as lines
  void clear();
  size_t begin(size_t i) const { return i == 0 ? 0 : ends_[i - 1]; }
  ByteBuffer buffer_;
  std::vector<size_t> ends_;       // for each line, the offset in buffer_ at which it ends
  TextPlace first_;                // where the first line begins
  std::vector<TextPlace> places_;  // where each element or text begins; empty for lines
  Form form_ = Form::kLines;
  size_t mark_ = 0;
  ReaderMark end_;
};

/// Limits of a batch. It ends with the line that reaches `bytes` or `lines`.
struct LineLimits {
  size_t bytes = size_t{1} << 20;
  size_t lines = 4096;
  size_t longest = 0;  // about how many bytes of a long line or element are kept; 0: all
  size_t refused = 0;  // from about this size on, a line or element is refused (kData); 0: never
  bool arrays = true;  // whether an input that begins with "[" begins with a JSON array
};

/// The default for LineLimits::refused. Real texts have no such long lines. A device or a decompression bomb
/// does, and would take all memory.
inline constexpr size_t kLongestLine = size_t{1} << 28;

/// Reads an input in batches of whole lines, or of what counts as lines.
class RecordReader {
 public:
  using Grow = std::function<void(size_t)>;
  virtual ~RecordReader() = default;
  RecordReader(const RecordReader&) = delete;
  RecordReader& operator=(const RecordReader&) = delete;

  /// Reads the next lines, at least one, into the batch; returns false at the end of the input. Before a long
  /// line makes the batch larger than LineLimits::bytes, calls `grow` with a lower bound of the new size;
  /// `grow` may wait or throw.
  virtual bool next(LineBatch& batch, const Grow& grow) = 0;
  /// Bytes of the input, or of the part of it, that were taken so far, before decompression.
  virtual uint64_t consumed() const = 0;
  virtual uint64_t decoder_memory() const = 0;  // bytes that decompression holds now

  /// Changes LineLimits::bytes for the batches that follow.
  void close_batches_at(size_t bytes) { limits_.bytes = bytes; }

 protected:
  explicit RecordReader(const LineLimits& limits) : limits_(limits) {}

  LineLimits limits_;
};

/// A reader of bytes from the beginning to the end.
class StreamRecords : public RecordReader {
 public:
  uint64_t consumed() const override { return input_.consumed(); }
  uint64_t decoder_memory() const override { return input_.decoder_memory(); }

 protected:
  StreamRecords(InputOrigin origin, LineLimits limits, const Interrupt* interrupt, uint64_t from,
                const StreamPart& part);
  static constexpr size_t kWindowBytes = size_t{1} << 18;
  bool refill(size_t room);  // reads at most `room` bytes to the window, which is empty; false at the end
  std::string_view take(size_t bytes);  // takes bytes out of the window

  InputStream input_;
  ByteBuffer storage_;       // memory for window_, of kWindowBytes or of the size of a smaller file
  std::string_view window_;  // bytes read and not yet in a batch
  uint64_t read_;            // bytes of the input up to the end of the window
};

/// Splits an input into batches of whole lines. Like Python's text files, it ends a line at \n, \r\n or a
/// lone \r, and the last line needs no end. With LineLimits::arrays, an input whose first character is "["
/// begins with a JSON array; the array's elements count as lines, and ordinary lines may follow the array.
/// The bytes themselves are not checked. For a line longer than LineLimits::longest, the batch keeps little
/// more than that many bytes, and the line end. Memory: one batch and a window of 256 KiB. Throws kData if
/// the array does not end, or if a line or element is longer than LineLimits::refused.
class LineReader final : public StreamRecords {
 public:
  /// Begins at `from`, a position of an earlier reader of the same input. `part`: the input is this part of
  /// the file. Its lines and bytes are counted from its own beginning, and only a part that begins with the
  /// file may begin with an array.
  LineReader(InputOrigin origin, LineLimits limits, const Interrupt* interrupt = nullptr,
             ReaderMark from = {}, const StreamPart& part = {});

  bool next(LineBatch& batch, const Grow& grow) override;

 private:
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
  void append(LineBatch& batch, std::string_view bytes, const Grow& grow) const;
  void refuse_long_line(const LineBatch& batch, size_t bytes) const;
  void leave_out(const LineBatch& batch, size_t bytes);
  void at_end_of_input(LineBatch& batch);
  ReaderMark mark() const;

  TextPlace place_;  // where the window begins; for lines, where the batch begins
  ReaderMark::Mode mode_ = ReaderMark::kLines;
  // Whether the byte before the window is a \r whose line has not ended yet, since a \n may follow.
  bool carriage_return_ = false;
  bool at_start_ = true;
  size_t left_out_ = 0;  // bytes of the current line or element that are not kept
  // State inside the array element that is being read.
  bool in_element_ = false, in_string_ = false, escaped_ = false;
  size_t depth_ = 0;
};

}  // namespace megalith
