#include "libcore/text/tokenizer_lines.h"

#include <limits>
#include <ostream>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/line_reader.h"
#include "libcore/json/json.h"

namespace megalith {
namespace {

/// Calls `take(std::string_view line)`; an Error of it gets the place in front.
template <class Take>
void each_line(const std::string& input, Take&& take) {
  LineReader reader(input, LineLimits{});
  LineBatch batch;
  int64_t number = 0;
  while (reader.next(batch, [](size_t) {})) {
    for (size_t i = 0; i < batch.lines(); ++i) {
      ++number;
      const std::span<char> line = batch.line(i);
      try {
        take(std::string_view(line.data(), line.size()));
      } catch (const Error& error) {
        fail(error.kind(), input, ":", number, ": ", error.what());
      }
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
      fail(ErrorKind::kData, quote(word), " is no token id");
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

}  // namespace

void TokenizerLines::encode(const std::string& input, std::ostream& out) const {
  std::vector<int32_t> ids;
  std::string row;
  each_line(input, [&](std::string_view line) {
    ids.clear();
    tokenizer.encode(text_of(line, json), ids);
    row.clear();
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i > 0) row += ' ';
      row += std::to_string(ids[i]);
    }
    out << row << '\n';
  });
}

void TokenizerLines::decode(const std::string& input, std::ostream& out) const {
  each_line(input, [&](std::string_view line) {
    const std::string text = tokenizer.decode(ids_of(line));
    out << (json ? json_quote(text) : text) << '\n';
  });
}

}  // namespace megalith
