#include "libcore/data/shards/record_cut.h"

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "libcore/base/utf8.h"

namespace megalith {
namespace {

/// As many bytes as LineReader looks at to find an array.
constexpr size_t kBlock = size_t{1} << 18;

/// Finds the first border between two records in bytes that come block by block.
class BorderSearch {
 public:
  explicit BorderSearch(TextUnit unit) : paragraphs_(unit == TextUnit::kParagraph) {}

  /// The number of bytes of `block` before the border; nothing if it is not in this block.
  std::optional<size_t> find(std::string_view block) {
    for (size_t i = 0; i < block.size(); ++i) {
      const char c = block[i];
      if (std::exchange(after_return_, false)) {
        if (ends_record()) return i + (c == '\n' ? 1 : 0);
        if (c == '\n') continue;
      }
      if (c == '\r')
        after_return_ = true;
      else if (c != '\n')
        blank_ = blank_ && (c == ' ' || c == '\t');
      else if (ends_record())
        return i + 1;
    }
    return std::nullopt;
  }

 private:
  /// Called at the end of a line. The first one may be only the end of a line, so it may not be blank.
  bool ends_record() {
    const bool blank = std::exchange(blank_, true), first = std::exchange(first_, false);
    return !paragraphs_ || (blank && !first);
  }

  bool paragraphs_, first_ = true, blank_ = true, after_return_ = false;
};

}  // namespace

StreamPlace record_behind(const std::string& path, const StreamPlace& from, TextUnit unit) {
  InputStream stream(path, nullptr, {.begin = from});
  const std::unique_ptr<char[]> block(new char[kBlock]);
  BorderSearch search(unit);
  uint64_t before = 0;
  // little at first: a line is mostly shorter than what a large read would take
  for (size_t room = size_t{1} << 12; const size_t n = stream.read(block.get(), room); room = kBlock) {
    if (const auto found = search.find({block.get(), n})) {
      before += *found;
      return stream.compressed() ? StreamPlace{from.at, from.skip + before}
                                 : StreamPlace{from.at + before, 0};
    }
    before += n;
  }
  return {stream.size(), 0};
}

bool begins_with_array(const std::string& path) {
  InputStream stream(path);
  const std::unique_ptr<char[]> block(new char[kBlock]);
  std::string_view head(block.get(), stream.read(block.get(), kBlock));
  if (head.starts_with(kUtf8ByteOrderMark)) head.remove_prefix(kUtf8ByteOrderMark.size());
  const size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && head[first] == '[';
}

}  // namespace megalith
