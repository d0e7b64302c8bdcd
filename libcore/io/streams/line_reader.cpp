#include "libcore/io/streams/line_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/machine/bytes16.h"
#include "libcore/base/utf8.h"

namespace megalith {
namespace {

/// How many bytes are read beyond a batch to find the end of its last line. Few, since most of these bytes
/// must be copied to the next batch.
constexpr size_t kOverhang = size_t{1} << 14;
constexpr std::string_view kBlanks = " \t\r\n";

/// Finds the first `one` or `other` in [at, end). Returns end if there is none.
const char* find_either(const char* at, const char* end, char one, char other) {
  constexpr ptrdiff_t kStep = Bytes16::kBytes;
  const auto hits = [&](const char* from) {
    const Bytes16 x = Bytes16::load(from);
    return x.is(one) | x.is(other);
  };
  for (; end - at >= 4 * kStep; at += 4 * kStep)
    if (((hits(at) | hits(at + kStep)) | (hits(at + 2 * kStep) | hits(at + 3 * kStep))).bits() != 0) break;
  for (; end - at >= kStep; at += kStep)
    if (const unsigned mask = hits(at).bits(); mask != 0) return at + std::countr_zero(mask);
  while (at < end && *at != one && *at != other) ++at;
  return at;
}

bool is_line_end(char c) {
  return c == '\n' || c == '\r';
}

}  // namespace

const char* find_line_end(const char* at, const char* end) {
  return find_either(at, end, '\n', '\r');
}

void TextPlace::advance(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  if (at < end && std::exchange(after_return, false) && *at == '\n') ++at;
  for (;;) {
    const char* const stop = find_line_end(at, end);
    byte += static_cast<uint64_t>(stop - at);
    if (stop == end) return;
    at = stop + 1;
    after_return = *stop == '\r' && at == end;
    if (*stop == '\r' && at < end && *at == '\n') ++at;
    ++line;
    byte = 1;
  }
}

void LineBatch::clear() {
  buffer_.clear();
  ends_.clear();
  places_.clear();
  form_ = Form::kLines;
  mark_ = 0;
}

std::span<char> LineBatch::line(size_t i) {
  const size_t from = begin(i) + skipped(i);
  size_t to = ends_[i];
  if (form_ != Form::kFile)  // removes only one line end: \n, \r or \r\n
    while (to > from && is_line_end(buffer_.data()[to - 1])) --to;
  return {buffer_.data() + from, to - from};
}

std::string_view LineBatch::raw_line(size_t i) const {
  return {buffer_.data() + begin(i), ends_[i] - begin(i)};
}

TextPlace LineBatch::place(size_t i, size_t offset) const {
  if (places_.empty()) return {first_.line + i, (i == 0 ? first_.byte : 1) + offset};
  TextPlace place = places_[i];
  place.advance(raw_line(i).substr(0, offset));
  return place;
}

StreamRecords::StreamRecords(InputOrigin origin, LineLimits limits, const Interrupt* interrupt, uint64_t from,
                             const StreamPart& part)
    : RecordReader(limits), input_(std::move(origin), interrupt, part), read_(from) {
  // All of a small file is in the window: a corpus may have a file for each text.
  const size_t small =
      !input_.compressed() && input_.size() > 0 ? static_cast<size_t>(input_.size()) + 1 : kWindowBytes;
  storage_.reserve(std::min(small, kWindowBytes));
  input_.skip(from);
}

bool StreamRecords::refill(size_t room) {
  window_ = {storage_.data(), input_.read(storage_.data(), std::min(room, storage_.capacity()))};
  read_ += window_.size();
  return !window_.empty();
}

std::string_view StreamRecords::take(size_t bytes) {
  const std::string_view taken = window_.substr(0, bytes);
  window_.remove_prefix(bytes);
  return taken;
}

LineReader::LineReader(InputOrigin origin, LineLimits limits, const Interrupt* interrupt, ReaderMark from,
                       const StreamPart& part)
    : StreamRecords(std::move(origin), limits, interrupt, from.bytes, part),
      place_(from.place),
      mode_(from.mode),
      at_start_(from.bytes == 0 && part.begin == StreamPlace{}) {}

bool LineReader::next(LineBatch& batch, const Grow& grow) {
  batch.clear();
  const bool first = std::exchange(at_start_, false);
  if (first && limits_.arrays && refill(kWindowBytes)) look_for_array();
  while (!full(batch, batch.bytes())) {
    if (window_.empty() && !read_more(batch)) {
      at_end_of_input(batch);
      break;
    }
    if (window_.empty()) continue;  // read_more() put all its bytes into the batch
    if (mode_ != ReaderMark::kLines)
      take_from_array(batch, grow);
    else if (batch.places_.empty())
      take_lines(batch, grow);
    else
      break;  // after the array's end: lines need a batch of their own
  }
  if (first && batch.places_.empty() && batch.lines() && batch.raw_line(0).starts_with(kUtf8ByteOrderMark))
    batch.mark_ = kUtf8ByteOrderMark.size();
  if (batch.places_.empty() && batch.lines()) place_ = {.line = place_.line + batch.lines()};
  batch.end_ = mark();
  return batch.lines() > 0;
}

ReaderMark LineReader::mark() const {
  return {.bytes = read_ - window_.size(), .place = place_, .mode = mode_};
}

/// Whether the batch, which has `bytes` bytes, is complete. It is complete only at the end of a line; between
/// a \r and a \n that may follow, the line has not ended, since both form one line end.
bool LineReader::full(const LineBatch& batch, size_t bytes) const {
  return batch.lines() > 0 && batch.ends_.back() == bytes &&
         (bytes >= limits_.bytes || batch.lines() >= limits_.lines);
}

/// Reads more of the input. Returns false at its end.
bool LineReader::read_more(LineBatch& batch) {
  if (mode_ != ReaderMark::kLines || !batch.places_.empty()) return refill(kWindowBytes);
  if (batch.bytes() + kOverhang <= limits_.bytes) return read_lines(batch);
  const size_t beyond = batch.bytes() > limits_.bytes ? batch.bytes() - limits_.bytes : 0;
  return refill(std::min(kWindowBytes, beyond + kOverhang));
}

/// Reads bytes directly into the batch, so that only the bytes after the batch's end must be copied.
bool LineReader::read_lines(LineBatch& batch) {
  if (batch.bytes() == 0) batch.first_ = place_;
  const size_t room = std::min({limits_.bytes - batch.bytes(), kWindowBytes, storage_.capacity()});
  batch.buffer_.reserve(limits_.bytes);
  char* const end = batch.buffer_.data() + batch.bytes();
  window_ = {end, input_.read(end, room)};
  read_ += window_.size();
  if (window_.empty()) return false;
  const size_t taken = scan_window(batch);
  batch.buffer_.extend(taken);
  window_.remove_prefix(taken);
  std::memcpy(storage_.data(), window_.data(), window_.size());
  window_ = {storage_.data(), window_.size()};
  return true;
}

void LineReader::append(LineBatch& batch, std::string_view bytes, const Grow& grow) const {
  if (const size_t size = batch.bytes() + bytes.size(); size > limits_.bytes) {
    refuse_long_line(batch, size);
    grow(size);
  }
  batch.buffer_.append(bytes.data(), bytes.size());
}

/// Throws kData if the last line or element is longer than LineLimits::refused. `bytes`: the size of the
/// batch with all of that line.
void LineReader::refuse_long_line(const LineBatch& batch, size_t bytes) const {
  const size_t begin = batch.lines() > 0 ? batch.ends_.back() : 0;
  if (limits_.refused == 0 || bytes <= begin + limits_.refused) return;
  const uint64_t line = in_element_ ? place_.line : batch.first_.line + batch.lines();
  fail(ErrorKind::kData, input_.path(), ":", line, ": the ", in_element_ ? "element" : "line",
       " has more than ", limits_.refused, " bytes; wanted text in lines");
}

void LineReader::leave_out(const LineBatch& batch, size_t bytes) {
  left_out_ += bytes;
  refuse_long_line(batch, batch.bytes() + left_out_);
}

void LineReader::at_end_of_input(LineBatch& batch) {
  if (mode_ == ReaderMark::kElement || mode_ == ReaderMark::kNextElement)
    fail(ErrorKind::kData, input_.path(), ":", place_.line, ":", place_.byte,
         ": the input ends inside its array, wanted \"]\"; the file was truncated");
  carriage_return_ = false;
  if (batch.bytes() > (batch.lines() ? batch.ends_.back() : 0)) batch.ends_.push_back(batch.bytes());
}

/// Whether the current line or element already exceeds LineLimits::longest, not counting a byte order mark
/// and a line end. Its other bytes need not be kept.
bool LineReader::enough_of_line(const LineBatch& batch) const {
  const size_t begin = batch.lines() > 0 ? batch.ends_.back() : 0;
  return limits_.longest > 0 && batch.bytes() - begin > limits_.longest + kUtf8ByteOrderMark.size() + 2;
}

void LineReader::take_lines(LineBatch& batch, const Grow& grow) {
  if (batch.bytes() == 0) batch.first_ = place_;
  if (enough_of_line(batch) && !carriage_return_) {
    const char* const begin = window_.data();
    leave_out(batch, take(static_cast<size_t>(find_line_end(begin, begin + window_.size()) - begin)).size());
    if (window_.empty()) return;
    left_out_ = 0;
  }
  const size_t taken = scan_window(batch);
  append(batch, take(taken), grow);
}

/// Records the lines that end in the window, until the batch is full. Returns how many bytes of the window
/// belong to the batch.
size_t LineReader::scan_window(LineBatch& batch) {
  const char* const begin = window_.data();
  const char* const end = begin + window_.size();
  const char* at = begin;
  if (std::exchange(carriage_return_, false)) {
    if (*at == '\n') ++at;
    batch.ends_.push_back(batch.bytes() + static_cast<size_t>(at - begin));
  }
  while (at < end && !full(batch, batch.bytes() + static_cast<size_t>(at - begin))) {
    at = find_line_end(at, end);
    if (at == end) break;
    const bool lone = *at++ == '\r';
    if (lone && at == end) {
      carriage_return_ = true;
      break;
    }
    if (lone && *at == '\n') ++at;
    batch.ends_.push_back(batch.bytes() + static_cast<size_t>(at - begin));
  }
  return static_cast<size_t>(at - begin);
}

void LineReader::look_for_array() {
  const size_t mark = window_.starts_with(kUtf8ByteOrderMark) ? kUtf8ByteOrderMark.size() : 0;
  const size_t first = window_.find_first_not_of(kBlanks, mark);
  if (first == std::string_view::npos || window_[first] != '[') return;
  place_.advance(take(first + 1));
  mode_ = ReaderMark::kElement;
}

void LineReader::take_from_array(LineBatch& batch, const Grow& grow) {
  if (in_element_) return take_element(batch, grow);
  if (mode_ == ReaderMark::kAfterArray) return leave_array_line();
  place_.advance(take(std::min(window_.find_first_not_of(kBlanks), window_.size())));
  if (window_.empty()) return;
  if (mode_ == ReaderMark::kElement && window_[0] == ']') return take_separator();  // an empty array, "[]"
  batch.places_.push_back(place_);
  if (window_[0] == ']' || window_[0] == ',') return refuse_separator(batch);
  in_element_ = true;
  in_string_ = escaped_ = false;
  depth_ = 0;
}

/// Adds a comma without an element to the batch as an element: the parser then rejects it and names its
/// place.
void LineReader::refuse_separator(LineBatch& batch) {
  batch.buffer_.append(window_.data(), 1);
  batch.ends_.push_back(batch.bytes());
  take_separator();
}

void LineReader::take_element(LineBatch& batch, const Grow& grow) {
  const size_t taken = scan_element();
  const bool ended = taken < window_.size();
  const std::string_view bytes = take(taken);
  if (enough_of_line(batch))
    leave_out(batch, bytes.size());
  else
    append(batch, bytes, grow);
  place_.advance(bytes);
  if (!ended) return;
  left_out_ = 0;
  batch.ends_.push_back(batch.bytes());
  in_element_ = false;
  take_separator();
}

void LineReader::take_separator() {
  mode_ = window_[0] == ',' ? ReaderMark::kNextElement : ReaderMark::kAfterArray;
  place_.advance(take(1));
}

/// Finds the end of the current element: the first comma or closing bracket outside the element's own
/// brackets. Returns how many bytes of the window belong to the element.
size_t LineReader::scan_element() {
  const char* const begin = window_.data();
  const char* const end = begin + window_.size();
  const char* at = begin;
  for (; at < end; ++at) {
    if (in_string_) {
      if (std::exchange(escaped_, false)) continue;
      at = find_either(at, end, '"', '\\');
      if (at == end) break;
      if (*at == '"')
        in_string_ = false;
      else
        escaped_ = true;
    } else if (*at == '"') {
      in_string_ = true;
    } else if (*at == '{' || *at == '[') {
      ++depth_;
    } else if (depth_ > 0) {
      if (*at == '}' || *at == ']') --depth_;
    } else if (*at == ',' || *at == ']') {
      break;
    }
  }
  return static_cast<size_t>(at - begin);
}

/// Skips blanks after the array up to the end of its line, since they would otherwise count as a line.
void LineReader::leave_array_line() {
  if (window_[0] == '\n' || place_.after_return) {
    if (window_[0] == '\n') place_.advance(take(1));
    mode_ = ReaderMark::kLines;
  } else if (window_[0] == '\r' || window_[0] == ' ' || window_[0] == '\t') {
    place_.advance(take(1));
  } else {
    mode_ = ReaderMark::kLines;
  }
}

}  // namespace megalith
