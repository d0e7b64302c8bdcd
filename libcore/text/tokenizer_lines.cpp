#include "libcore/text/tokenizer_lines.h"

#include <charconv>
#include <exception>
#include <limits>
#include <ostream>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/io/streams/line_reader.h"
#include "libcore/json/json.h"
#include "libcore/threads/pipeline.h"

namespace megalith {
namespace {

constexpr size_t kBatchBytes = size_t{1} << 18;

/// Some lines and what is written for them.
struct Lines {
  LineBatch batch;
  int64_t first = 0;  // the number of the first line
  ByteBuffer rows;
  std::exception_ptr error = nullptr;  // of the line after the last row
  std::vector<int32_t> ids = {};       // of one line; here, so that its memory is used again
};

std::string_view line_of(Lines& lines, size_t i) {
  const std::span<char> line = lines.batch.line(i);
  return {line.data(), line.size()};
}

void append(ByteBuffer& rows, std::string_view text) {
  rows.append(text.data(), text.size());
}

/// Writes what `add_row(Lines&, std::string_view line)` adds to the rows for each line. An Error from it gets
/// the line's place in front; an Error from `out` does not, since no line is to blame.
class LineMap {
 public:
  using AddRow = std::function<void(Lines&, std::string_view line)>;
  LineMap(std::string input, AddRow add_row)
      : input_(std::move(input)),
        add_row_(std::move(add_row)),
        reader_(input_, {.bytes = kBatchBytes, .refused = kLongestLine}) {}

  void write(std::ostream& out, size_t workers) {
    PipelineStages<Lines> stages{
        .source = [&](size_t, Lines& lines, const auto& grow) { return next(lines, grow); },
        .work = [&](size_t, Lines& lines) { add_rows(lines); },
        .sink =
            [&](Lines& lines) {
              out.write(lines.rows.data(), static_cast<std::streamsize>(lines.rows.size()));
              if (lines.error) std::rethrow_exception(lines.error);
            },
        .weight = kBatchBytes};
    Pipeline<Lines>({.workers = workers, .items = 2 * workers + 2}, std::move(stages)).run();
  }

 private:
  bool next(Lines& lines, const std::function<void(size_t)>& grow) {
    lines.rows.clear();
    lines.error = nullptr;
    lines.first = next_;
    if (!reader_.next(lines.batch, grow)) return false;
    next_ += static_cast<int64_t>(lines.batch.lines());
    return true;
  }

  void add_rows(Lines& lines) {
    for (size_t i = 0; i < lines.batch.lines(); ++i) {
      const size_t before = lines.rows.size();
      try {
        add_named_row(lines, i);
      } catch (...) {
        lines.rows.truncate(before);
        lines.error = std::current_exception();
        return;
      }
    }
  }

  void add_named_row(Lines& lines, size_t i) {
    try {
      add_row_(lines, line_of(lines, i));
      append(lines.rows, "\n");
    } catch (const Error& error) {
      fail(error.kind(), input_, ":", lines.first + static_cast<int64_t>(i), ": ", error.what());
    }
  }

  std::string input_;
  AddRow add_row_;
  LineReader reader_;
  int64_t next_ = 1;
};

std::string json_text(std::string_view line) {
  const Json text = Json::parse(line, "the line");
  if (!text.is_string())
    fail(ErrorKind::kData, "found ", shortened(text.dump(), 100), ", wanted a JSON string");
  return text.as_string();
}

void require_utf8(std::string_view line) {
  const size_t good = valid_utf8_prefix(line);
  if (good < line.size()) fail(ErrorKind::kData, "byte ", good + 1, " is not UTF-8");
}

void append_ids(std::span<const int32_t> ids, ByteBuffer& rows) {
  constexpr size_t kDigits = std::numeric_limits<int32_t>::digits10 + 3;  // with a sign and a blank
  const size_t begin = rows.size();
  char* const first = rows.extend(ids.size() * kDigits);
  char* at = first;
  for (const int32_t id : ids) {
    if (at > first) *at++ = ' ';
    at = std::to_chars(at, at + kDigits, id).ptr;
  }
  rows.truncate(begin + static_cast<size_t>(at - first));
}

/// Replaces `ids` with those of a line.
void read_ids(std::string_view line, std::vector<int32_t>& ids) {
  ids.clear();
  for (std::string_view rest = trim(line); !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    if (word.empty()) continue;
    const auto id = parse_int(word);
    if (!id || *id < 0 || *id > std::numeric_limits<int32_t>::max())
      fail(ErrorKind::kData, quote(word), " is not a token id");
    ids.push_back(static_cast<int32_t>(*id));
  }
}

}  // namespace

void TokenizerLines::encode(const std::string& input, std::ostream& out) const {
  const auto add_row = [this](Lines& lines, std::string_view line) {
    lines.ids.clear();
    if (!json) require_utf8(line);
    const std::string text = json ? json_text(line) : std::string();
    tokenizer.encode(json ? text : line, lines.ids);
    append_ids(lines.ids, lines.rows);
  };
  LineMap(input, add_row).write(out, workers);
}

void TokenizerLines::decode(const std::string& input, std::ostream& out) const {
  const auto add_row = [this](Lines& lines, std::string_view line) {
    read_ids(line, lines.ids);
    const std::string text = tokenizer.decode(lines.ids);
    append(lines.rows, json ? json_quote(text) : text);
  };
  LineMap(input, add_row).write(out, workers);
}

}  // namespace megalith
