#include "libcore/text/id_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <string>

#include "libcore/text/tokenizer.h"

namespace megalith {
namespace {

constexpr uint64_t kZeros = 0x3030'3030'3030'3030;  // "00000000"
constexpr size_t kDigits = 8;                       // that are handled together
constexpr size_t kLongestId = 10;

static_assert(std::endian::native == std::endian::little);

/// The eight decimal digits of a number below 10^8, the first one in the lowest byte. Each line halves the
/// groups of digits, all at once: x * 10486 >> 20 is x / 100 for x < 10^4, and x * 103 >> 10 is x / 10 for
/// x < 100.
uint64_t eight_digits(uint32_t number) {
  const uint64_t fours = number / 10'000 | uint64_t{number % 10'000} << 32;
  const uint64_t hundreds = fours * 10'486 >> 20 & 0x0000'007F'0000'007F;
  const uint64_t twos = hundreds | (fours - 100 * hundreds) << 16;
  const uint64_t tens = twos * 103 >> 10 & 0x000F'000F'000F'000F;
  return tens | (twos - 10 * tens) << 8;
}

/// Writes a number and returns its end. Eight bytes may be written.
char* write_number(char* at, uint32_t number) {
  if (number >= 100'000'000) [[unlikely]]
    return std::to_chars(at, at + kLongestId, number).ptr;
  const uint64_t digits = eight_digits(number);
  const int zeros = std::countr_zero(digits | uint64_t{1} << 56) / 8;  // before the first other digit
  const uint64_t text = (digits | kZeros) >> (8 * zeros);
  std::memcpy(at, &text, sizeof text);
  return at + kDigits - zeros;
}

/// The number whose eight digits are the bytes of `text`, the first one in the lowest byte. Each line joins
/// neighbouring groups of digits, as eight_digits() divides them.
uint32_t number_of(uint64_t text) {
  const uint64_t digits = text - kZeros;
  const uint64_t twos = (digits * 10 + (digits >> 8)) & 0x00FF'00FF'00FF'00FF;
  const uint64_t fours = (twos * 100 + (twos >> 16)) & 0x0000'FFFF'0000'FFFF;
  return static_cast<uint32_t>(fours * 10'000 + (fours >> 32));
}

/// How many of the bytes of `text` are digits before the first that is none; 8 if all are.
size_t leading_digits(uint64_t text) {
  const uint64_t bytes = text ^ kZeros;  // 0 to 9 for digits
  const uint64_t others = ((bytes & 0x7F7F'7F7F'7F7F'7F7F) + 0x7676'7676'7676'7676) | bytes;
  return static_cast<size_t>(std::countr_zero(others & 0x8080'8080'8080'8080)) / 8;
}

/// Reads lists of ids from memory that goes on for kDigits bytes after them.
class RowReader {
 public:
  RowReader(const char* at, std::vector<int32_t>& ids) : at_(at), ids_(ids) {}

  bool read_until(const char* end) {
    while (at_ < end)
      if (*at_ == '\n' ? !end_row() : !read_id()) return false;
    return true;
  }

 private:
  bool end_row() {
    ids_.push_back(Tokenizer::kTextEnd);
    ++at_;
    return true;
  }
  /// Reads an id and the blank after it, or the end of the row.
  bool read_id() {
    uint64_t text;
    std::memcpy(&text, at_, sizeof text);
    const size_t count = leading_digits(text);
    if (count == 0 || count == kDigits) return false;
    const uint64_t zeros = kZeros >> (8 * count);
    ids_.push_back(static_cast<int32_t>(number_of(text << (8 * (kDigits - count)) | zeros)));
    at_ += count;
    if (*at_ == '\n') return end_row();
    return *at_++ == ' ' && *at_ != '\n';
  }

  const char* at_;
  std::vector<int32_t>& ids_;
};

}  // namespace

IdTexts::IdTexts(size_t size) : texts_(std::min<size_t>(size, 1'000'000)) {
  for (size_t id = 0; id < texts_.size(); ++id) {
    std::array<char, kDigits> text{};
    char* const end = write_number(text.data(), static_cast<uint32_t>(id));
    *end = ' ';
    text[kDigits - 1] = static_cast<char>(end + 1 - text.data());
    std::memcpy(&texts_[id], text.data(), sizeof text);
  }
}

inline char* IdTexts::write(char* at, int32_t id) const {
  if (static_cast<size_t>(id) < texts_.size()) [[likely]] {
    const uint64_t text = texts_[static_cast<size_t>(id)];
    std::memcpy(at, &text, sizeof text);
    return at + (text >> 56);
  }
  at = write_number(at, static_cast<uint32_t>(id));
  *at++ = ' ';
  return at;
}

void append_id_rows(const IdBuffer& ids, const IdTexts& texts, ByteBuffer& rows) {
  const size_t before = rows.size();
  char* const first = rows.extend(ids.size() * (kLongestId + 1) + kDigits);
  char* at = first;
  bool in_row = false;
  ids.each_part<int32_t>([&](std::span<const int32_t> part) {
    for (const int32_t id : part) {
      if (id == Tokenizer::kTextEnd) {
        at -= in_row ? 1 : 0;  // the blank
        *at++ = '\n';
        in_row = false;
        continue;
      }
      at = texts.write(at, id);
      in_row = true;
    }
  });
  rows.truncate(before + static_cast<size_t>(at - first));
}

bool read_id_rows(std::string_view rows, std::vector<int32_t>& ids) {
  ids.clear();
  if (!rows.ends_with('\n')) return false;
  // The last ids are read from a copy, after which there is memory.
  const size_t from = rows.size() <= kDigits ? 0 : rows.find_last_of(" \n", rows.size() - kDigits - 1) + 1;
  if (!RowReader(rows.data(), ids).read_until(rows.data() + from)) return false;
  const std::string last = std::string(rows.substr(from)) + std::string(kDigits, '\0');
  return RowReader(last.data(), ids).read_until(last.data() + (rows.size() - from));
}

}  // namespace megalith
