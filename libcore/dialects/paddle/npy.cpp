#include "libcore/dialects/paddle/npy.h"

#include <algorithm>
#include <optional>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeader = 10000;  // the same limit as numpy's

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  fail(ErrorKind::kData, where, ": ", what, "; wanted a row of integers as numpy.save writes it");
}

/// Parses the header: a Python dict with the keys descr, fortran_order and shape, each once and in any order.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& where) : rest_(text), where_(where) {}

  struct Header {
    std::string_view type;
    int64_t count = 0;
  };
  Header parse() {
    take('{');
    while (!skip('}')) {
      member();
      if (skip('}')) break;
      take(',');
    }
    if (!type_ || !count_ || !order_) refuse(where_, "its header has no descr, fortran_order or shape");
    skip_blanks();
    if (!rest_.empty() && rest_ != "\n") refuse(where_, "its header has text after the dict");
    return {*type_, *count_};
  }

 private:
  void member() {
    const std::string_view key = text();
    take(':');
    const bool once = key == "descr"           ? set(type_, text())
                      : key == "shape"         ? set(count_, shape())
                      : key == "fortran_order" ? set(order_, flag())
                                               : false;
    if (!once) refuse(where_, concat("its header has the key ", quote(key), " twice, or does not know it"));
  }
  template <class T>
  static bool set(std::optional<T>& value, T found) {
    if (value) return false;
    value = found;
    return true;
  }

  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }
  bool skip(char wanted) {
    skip_blanks();
    if (rest_.empty() || rest_[0] != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void take(char wanted) {
    if (!skip(wanted))
      refuse(where_, concat("its header has no ", quote(std::string(1, wanted)), " before ",
                            quote(rest_.substr(0, 10))));
  }
  /// Reads a string. It must not contain escapes, which numpy does not write.
  std::string_view text() {
    take('\'');
    const size_t end = std::min(rest_.find('\''), rest_.size());
    const std::string_view found = rest_.substr(0, end);
    const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '\\'; };
    if (end == rest_.size() || !std::all_of(found.begin(), found.end(), is_plain))
      refuse(where_, "its header has a text without an end");
    rest_.remove_prefix(end + 1);
    return found;
  }
  bool flag() {
    skip_blanks();
    for (const std::string_view word : {"True", "False"})
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return word == "True";
      }
    refuse(where_, "its fortran_order is neither True nor False");
  }
  int64_t shape() {
    take('(');
    skip_blanks();
    const std::string_view digits =
        rest_.substr(0, std::min(rest_.find_first_not_of("0123456789"), rest_.size()));
    const auto count = parse_int(digits);
    if (!count || (digits.size() > 1 && digits[0] == '0')) refuse(where_, "its shape is not that of a row");
    rest_.remove_prefix(digits.size());
    take(',');
    take(')');
    return *count;
  }

  std::string_view rest_;
  const std::string& where_;
  std::optional<std::string_view> type_;
  std::optional<int64_t> count_;
  std::optional<bool> order_;
};

struct Parts {
  std::string_view header, elements;
};

Parts parts_of(std::string_view file, const std::string& where) {
  constexpr size_t kVersion = kMagic.size(), kLength = kVersion + 2;
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(file[i])); };
  if (file.size() < kLength + 4 || !file.starts_with(kMagic)) refuse(where, "is not a .npy file");
  const size_t version = byte(kVersion);
  if (version < 1 || version > 3 || byte(kVersion + 1) != 0)
    refuse(where,
           concat("has version ", version, ".", byte(kVersion + 1), " of the format, wanted 1.0 to 3.0"));
  const size_t width = version == 1 ? 2 : 4, begin = kLength + width;
  size_t length = 0;
  for (size_t i = 0; i < width; ++i) length |= byte(kLength + i) << 8 * i;
  if (length > file.size() - begin) refuse(where, "ends within its header");
  if (length > kMaxHeader) refuse(where, concat("has a header of ", length, " bytes"));
  return {file.substr(begin, length), file.substr(begin + length)};
}

}  // namespace

NpyArray parse_npy(std::string_view file, const std::string& where) {
  const Parts parts = parts_of(file, where);
  const auto [type, count] = HeaderParser(parts.header, where).parse();
  if (type.size() != 3 || (type[0] != '<' && type[0] != '|') || (type[1] != 'i' && type[1] != 'u') ||
      std::string_view("1248").find(type[2]) == std::string_view::npos)
    refuse(where, concat("holds elements of type '", type, "'"));
  const auto width = static_cast<size_t>(type[2] - '0'), elements = static_cast<size_t>(count);
  if (parts.elements.size() / width != elements || parts.elements.size() % width != 0)
    refuse(where, concat("has ", parts.elements.size(), " bytes of elements, its header says ", count, " of ",
                         width));
  return {.bytes = parts.elements, .kind = type[1], .width = width};
}

}  // namespace megalith
