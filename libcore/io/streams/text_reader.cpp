#include "libcore/io/streams/text_reader.h"

#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/utf8.h"

namespace megalith {

TextReader::TextReader(InputOrigin origin, TextUnit unit, LineLimits limits, const Interrupt* interrupt,
                       const ReaderMark& from, const StreamPart& part)
    : StreamRecords(std::move(origin), limits, interrupt, from.bytes, part),
      unit_(unit),
      place_(from.place),
      at_start_(from.bytes == 0 && part.begin == StreamPlace{}) {}

bool TextReader::next(LineBatch& batch, const Grow& grow) {
  batch.clear();
  batch.form_ = unit_ == TextUnit::kFile ? LineBatch::Form::kFile : LineBatch::Form::kParagraphs;
  line_begin_ = 0;
  if (std::exchange(at_start_, false)) skip_byte_order_mark();
  if (unit_ == TextUnit::kFile)
    take_file(batch, grow);
  else
    take_paragraphs(batch, grow);
  batch.end_ = {.bytes = read_ - window_.size(), .place = place_};
  return batch.lines() > 0;
}

/// Fills the window with the beginning of the input. A pipe may give it byte by byte.
void TextReader::skip_byte_order_mark() {
  size_t size = 0;
  while (size < kUtf8ByteOrderMark.size()) {
    const size_t more = input_.read(storage_.data() + size, storage_.capacity() - size);
    if (more == 0) break;
    size += more;
  }
  window_ = {storage_.data(), size};
  read_ += size;
  if (window_.starts_with(kUtf8ByteOrderMark)) place_.advance(take(kUtf8ByteOrderMark.size()));
}

void TextReader::take_file(LineBatch& batch, const Grow& grow) {
  while (!window_.empty() || refill(kWindowBytes)) {
    if (!std::exchange(in_text_, true)) batch.places_.push_back(place_);
    append(batch, take(window_.size()), grow);
  }
  end_text(batch);
}

/// Whether the batch is complete. It is complete only between two texts.
bool TextReader::full(const LineBatch& batch) const {
  return !in_text_ && batch.lines() > 0 &&
         (batch.ends_.back() >= limits_.bytes || batch.lines() >= limits_.lines);
}

void TextReader::take_paragraphs(LineBatch& batch, const Grow& grow) {
  while (!full(batch)) {
    if (window_.empty() && !refill(kWindowBytes)) {
      if (blank_line_) batch.buffer_.truncate(line_begin_);
      return end_text(batch);
    }
    take_line(batch, grow);
  }
}

/// Takes the rest of the current line, or as much of it as is in the window.
void TextReader::take_line(LineBatch& batch, const Grow& grow) {
  bool ended = false;
  const std::string_view part = take(scan_line(ended));
  if (blank_line_ && part.find_first_not_of(" \t\r\n") != std::string_view::npos) {
    blank_line_ = false;
    if (!std::exchange(in_text_, true)) batch.places_.push_back(place_);
  }
  append(batch, part, grow);
  if (ended) end_line(batch);
}

/// Returns how many bytes of the window belong to the current line, and whether it ends with them.
size_t TextReader::scan_line(bool& ended) {
  const char* const begin = window_.data();
  const char* const end = begin + window_.size();
  if (std::exchange(after_return_, false)) {
    ended = true;
    return *begin == '\n' ? 1 : 0;
  }
  const char* at = find_line_end(begin, end);
  if (at == end) return window_.size();
  const bool is_return = *at++ == '\r';
  after_return_ = is_return && at == end;
  ended = !after_return_;
  if (is_return && ended && *at == '\n') ++at;
  return static_cast<size_t>(at - begin);
}

/// A blank line is not kept, and ends the text before it.
void TextReader::end_line(LineBatch& batch) {
  if (blank_line_) {
    batch.buffer_.truncate(line_begin_);
    end_text(batch);
  }
  place_ = {.line = place_.line + 1};
  blank_line_ = true;
  line_begin_ = batch.bytes();
}

void TextReader::end_text(LineBatch& batch) {
  left_out_ = 0;
  if (std::exchange(in_text_, false)) batch.ends_.push_back(batch.bytes());
}

/// Adds bytes to the current text. If it already exceeds LineLimits::longest, not counting its last line end,
/// they are only counted.
void TextReader::append(LineBatch& batch, std::string_view bytes, const Grow& grow) {
  constexpr size_t kLineEnd = 2;
  const size_t kept = batch.bytes() - (batch.lines() > 0 ? batch.ends_.back() : 0);
  if (limits_.refused > 0 && kept + left_out_ + bytes.size() > limits_.refused)
    fail(ErrorKind::kData, input_.path(), ":",
         batch.places_.empty() ? place_.line : batch.places_.back().line, ": the text has more than ",
         limits_.refused, " bytes; wanted a shorter text");
  if (limits_.longest > 0 && kept > limits_.longest + kLineEnd) {
    left_out_ += bytes.size();
    return;
  }
  if (const size_t size = batch.bytes() + bytes.size(); size > limits_.bytes) grow(size);
  batch.buffer_.append(bytes.data(), bytes.size());
}

std::unique_ptr<RecordReader> open_records(const InputOrigin& origin, TextUnit unit, const LineLimits& limits,
                                           const Interrupt* interrupt, const ReaderMark& from,
                                           const StreamPart& part) {
  if (unit == TextUnit::kNone) return std::make_unique<LineReader>(origin, limits, interrupt, from, part);
  return std::make_unique<TextReader>(origin, unit, limits, interrupt, from, part);
}

}  // namespace megalith
