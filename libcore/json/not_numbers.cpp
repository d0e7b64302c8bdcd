#include "libcore/json/not_numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

constexpr std::string_view kWordEnd = " \t\r\n,:[]{}\"";
constexpr size_t kMaxShown = 200;  // bytes of a path and of a value in a message

bool is_no_number(std::string_view word) {
  if (word == "NaN" || word == "Infinity" || word == "-Infinity") return true;
  return word.find_first_not_of("+-.0123456789eE") == std::string_view::npos &&
         !std::isfinite(std::strtod(std::string(word).c_str(), nullptr));
}

/// A reader of JSON that knows the path of the value at its place.
class Walk {
 public:
  explicit Walk(std::string_view text) : left_(text) {}

  std::string find() {
    while (!left_.empty()) {
      const char c = left_.front();
      if (c == '"') {
        take_string();
      } else if (kWordEnd.find(c) != std::string_view::npos) {
        take_mark(c);
      } else {
        const std::string_view word = left_.substr(0, left_.find_first_of(kWordEnd));
        if (is_no_number(word)) return concat(path(), " is ", shortened(std::string(word), kMaxShown));
        left_.remove_prefix(word.size());
      }
    }
    return {};
  }

 private:
  struct Level {
    bool object;
    std::string_view key = {};  // of the member, in an object
    size_t index = 0;           // of the element, in an array
  };

  /// Takes a string. In an object, a value overwrites the key, which is not needed after it.
  void take_string() {
    size_t end = 1;
    while (end < left_.size() && left_[end] != '"') end += left_[end] == '\\' ? 2 : 1;
    end = std::min(end, left_.size());
    if (!levels_.empty()) levels_.back().key = left_.substr(1, end - 1);
    left_.remove_prefix(std::min(end + 1, left_.size()));
  }
  void take_mark(char c) {
    if (c == '{' || c == '[') levels_.push_back({c == '{'});
    if ((c == '}' || c == ']') && !levels_.empty()) levels_.pop_back();
    if (c == ',' && !levels_.empty()) ++levels_.back().index;
    left_.remove_prefix(1);
  }
  std::string path() const {
    std::string path;
    for (const Level& level : levels_)
      path += level.object ? concat(path.empty() ? "" : ".", level.key) : concat("[", level.index, "]");
    return path.empty() ? "the whole" : shortened(path, kMaxShown);
  }

  std::string_view left_;
  std::vector<Level> levels_ = {};
};

}  // namespace

std::string find_no_number(std::string_view text) {
  return Walk(text).find();
}

}  // namespace megalith
