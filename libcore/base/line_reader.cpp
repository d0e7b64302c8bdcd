#include "libcore/base/line_reader.h"

#include <bit>
#include <utility>

#include <emmintrin.h>

namespace megalith {
namespace {

constexpr size_t kWindowBytes = size_t{1} << 18;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// The first \n or \r of [at, end), or end.
const char* find_line_end(const char* at, const char* end) {
  const __m128i newline = _mm_set1_epi8('\n');
  const __m128i carriage_return = _mm_set1_epi8('\r');
  for (; end - at >= 16; at += 16) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(x, newline), _mm_cmpeq_epi8(x, carriage_return));
    const auto mask = static_cast<unsigned>(_mm_movemask_epi8(hit));
    if (mask != 0) return at + std::countr_zero(mask);
  }
  while (at < end && *at != '\n' && *at != '\r') ++at;
  return at;
}

bool is_line_end(char c) {
  return c == '\n' || c == '\r';
}

}  // namespace

std::span<char> LineChunk::line(size_t i) {
  const size_t from = begin(i) + skipped(i);
  size_t to = ends_[i];
  while (to > from && is_line_end(buffer_.data()[to - 1])) --to;  // one end at most: \n, \r or \r\n
  return {buffer_.data() + from, to - from};
}

std::string_view LineChunk::raw_line(size_t i) const {
  return {buffer_.data() + begin(i), ends_[i] - begin(i)};
}

LineReader::LineReader(std::string path, LineLimits limits, const Interrupt* interrupt)
    : input_(std::move(path), interrupt), limits_(limits), storage_(kWindowBytes) {}

bool LineReader::next(LineChunk& chunk, const std::function<void(size_t)>& grow) {
  chunk.buffer_.clear();
  chunk.ends_.clear();
  chunk.mark_ = 0;
  const bool first = std::exchange(at_start_, false);
  while (!full(chunk, chunk.bytes())) {
    if (window_.empty() && !refill()) {
      carriage_return_ = false;
      if (chunk.bytes() > (chunk.lines() ? chunk.ends_.back() : 0)) chunk.ends_.push_back(chunk.bytes());
      break;
    }
    const size_t taken = scan_window(chunk);
    if (chunk.bytes() + taken > limits_.bytes) grow(chunk.bytes() + taken);
    chunk.buffer_.append(window_.data(), taken);
    window_.remove_prefix(taken);
  }
  if (first && chunk.lines() && chunk.raw_line(0).starts_with(kByteOrderMark))
    chunk.mark_ = kByteOrderMark.size();
  return chunk.lines() > 0;
}

/// A chunk is closed only at the end of a line, and never between \r and what may be its \n.
bool LineReader::full(const LineChunk& chunk, size_t bytes) const {
  return chunk.lines() > 0 && chunk.ends_.back() == bytes &&
         (bytes >= limits_.bytes || chunk.lines() >= limits_.lines);
}

bool LineReader::refill() {
  window_ = {storage_.data(), input_.read(storage_.data(), storage_.size())};
  return !window_.empty();
}

/// Records the lines that end in the window until the chunk is full; returns the window's bytes that belong
/// to it.
size_t LineReader::scan_window(LineChunk& chunk) {
  const char* const begin = window_.data();
  const char* const end = begin + window_.size();
  const char* at = begin;
  if (std::exchange(carriage_return_, false)) {
    if (*at == '\n') ++at;
    chunk.ends_.push_back(chunk.bytes() + static_cast<size_t>(at - begin));
  }
  while (at < end && !full(chunk, chunk.bytes() + static_cast<size_t>(at - begin))) {
    at = find_line_end(at, end);
    if (at == end) break;
    const bool lone = *at++ == '\r';
    if (lone && at == end) {
      carriage_return_ = true;
      break;
    }
    if (lone && *at == '\n') ++at;
    chunk.ends_.push_back(chunk.bytes() + static_cast<size_t>(at - begin));
  }
  return static_cast<size_t>(at - begin);
}

}  // namespace megalith
