#include "libcore/text/tokenizer_lines.h"

#include <limits>
#include <ostream>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/io/streams/line_reader.h"
#include "libcore/json/json.h"

namespace megalith {
namespace {

/// Writes `row_of(std::string_view line)` for each line. An Error from `row_of` gets the line's place in
/// front; an Error from `out` does not, since no line is to blame.
template <class RowOf>
void map_lines(const std::string& input, std::ostream& out, RowOf&& row_of) {
  LineReader reader(input, {.refused = kLongestLine});
  LineBatch batch;
  int64_t number = 0;
  const auto named_row_of = [&](std::string_view line) {
    try {
      return row_of(line);
    } catch (const Error& error) {
      fail(error.kind(), input, ":", number, ": ", error.what());
    }
  };
  while (reader.next(batch, [](size_t) {})) {
    for (size_t i = 0; i < batch.lines(); ++i) {
      ++number;
      const std::span<char> line = batch.line(i);
      out << named_row_of(std::string_view(line.data(), line.size())) << '\n';
    }
  }
}

std::string text_of(std::string_view line, bool json) {
  if (json) {
    const Json text = Json::parse(line, "the line");
    if (!text.is_string())
      fail(ErrorKind::kData, "found ", shortened(text.dump(), 100), ", wanted a JSON string");
    return text.as_string();
  }
  const size_t good = valid_utf8_prefix(line);
  if (good < line.size()) fail(ErrorKind::kData, "byte ", good + 1, " is not UTF-8");
  return std::string(line);
}

std::vector<int32_t> ids_of(std::string_view line) {
  std::vector<int32_t> ids;
  for (const std::string& word : split(trim(line), ' ')) {
    if (word.empty()) continue;
    const auto id = parse_int(word);
    if (!id || *id < 0 || *id > std::numeric_limits<int32_t>::max())
      fail(ErrorKind::kData, quote(word), " is not a token id");
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

}  // namespace

void TokenizerLines::encode(const std::string& input, std::ostream& out) const {
  std::vector<int32_t> ids;
  map_lines(input, out, [&](std::string_view line) {
    ids.clear();
    tokenizer.encode(text_of(line, json), ids);
    std::string row;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i > 0) row += ' ';
      row += std::to_string(ids[i]);
    }
    return row;
  });
}

void TokenizerLines::decode(const std::string& input, std::ostream& out) const {
  map_lines(input, out, [&](std::string_view line) {
    std::string text = tokenizer.decode(ids_of(line));
    return json ? json_quote(text) : text;
  });
}

}  // namespace megalith
