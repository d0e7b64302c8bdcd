#include "libcore/text/tokenizer_lines.h"

#include <exception>
#include <limits>
#include <mutex>
#include <ostream>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/io/streams/line_reader.h"
#include "libcore/json/json.h"
#include "libcore/text/id_rows.h"
#include "libcore/threads/pipeline.h"

namespace megalith {
namespace {

constexpr size_t kBatchBytes = size_t{1} << 16;  // so that lines, ids and rows stay in a core's cache

/// Some lines and what is written for them.
struct Lines {
  LineBatch batch;
  int64_t first = 0;  // the number of the first line
  ByteBuffer rows;
  std::exception_ptr error = nullptr;  // of the line after the last row
  // What the rows are made from; here, so that its memory is used again.
  std::vector<std::string> storage = {};
  std::vector<std::string_view> texts = {};
  IdBuffer buffer{sizeof(int32_t)};
  std::vector<int32_t> ids = {};
};

std::string_view line_of(Lines& lines, size_t i) {
  const std::span<char> line = lines.batch.line(i);
  return {line.data(), line.size()};
}

void append(ByteBuffer& rows, std::string_view text) {
  rows.append(text.data(), text.size());
}

/// Writes a row for each line. An Error of a line gets the line's place in front; an Error from `out` does
/// not, since no line is to blame.
class LineMap {
 public:
  struct Rows {
    /// Adds the rows of all lines. Returns false or throws kData if some line is not as most are; the rows
    /// are then made one by one.
    std::function<bool(Lines&)> all;
    /// Adds the row of one line, without its end.
    std::function<void(Lines&, std::string_view line)> one;
  };
  LineMap(std::string input, Rows make)
      : input_(std::move(input)),
        make_(std::move(make)),
        reader_(input_, {.bytes = kBatchBytes, .refused = kLongestLine, .arrays = false}) {}

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
    if (add_all(lines)) return;
    lines.rows.clear();
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

  bool add_all(Lines& lines) {
    try {
      return make_.all(lines);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData) throw;
      return false;
    }
  }

  void add_named_row(Lines& lines, size_t i) {
    try {
      make_.one(lines, line_of(lines, i));
      append(lines.rows, "\n");
    } catch (const Error& error) {
      fail(error.kind(), input_, ":", lines.first + static_cast<int64_t>(i), ": ", error.what());
    }
  }

  std::string input_;
  Rows make_;
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

/// Makes rows of texts. Thread-safe.
class RowEncoder {
 public:
  explicit RowEncoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  /// Encodes `lines.texts` to rows.
  void append_rows(Lines& lines) {
    lines.buffer.clear();
    tokenizer_.encode_all(lines.texts, lines.buffer);
    append_id_rows(lines.buffer, texts_for(lines.buffer.size()), lines.rows);
  }

 private:
  /// For few ids, the table would take longer to make than it saves.
  const IdTexts& texts_for(size_t ids) {
    constexpr size_t kMany = 4096;
    if (ids < kMany) return none_;
    std::call_once(made_, [&] { texts_ = IdTexts(static_cast<size_t>(tokenizer_.vocab_size())); });
    return texts_;
  }

  const Tokenizer& tokenizer_;
  const IdTexts none_{0};
  IdTexts texts_{0};
  std::once_flag made_;
};

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
  RowEncoder encoder(tokenizer);
  const auto all = [&](Lines& lines) {
    const size_t count = lines.batch.lines();
    if (!json && valid_utf8_prefix(lines.batch.all()) < lines.batch.bytes()) return false;
    lines.storage.resize(json ? count : 0);
    lines.texts.resize(count);
    for (size_t i = 0; i < count; ++i) {
      lines.texts[i] = line_of(lines, i);
      if (json) lines.texts[i] = lines.storage[i] = json_text(lines.texts[i]);
    }
    encoder.append_rows(lines);
    return true;
  };
  const auto one = [&](Lines& lines, std::string_view line) {
    if (!json) require_utf8(line);
    const std::string text = json ? json_text(line) : std::string();
    lines.texts.assign(1, json ? text : line);
    encoder.append_rows(lines);
    lines.rows.truncate(lines.rows.size() - 1);  // without its end
  };
  LineMap(input, {all, one}).write(out, workers);
}

void TokenizerLines::decode(const std::string& input, std::ostream& out) const {
  const auto all = [this](Lines& lines) {
    if (json || !read_id_rows(lines.batch.all(), lines.ids)) return false;
    tokenizer.decode_all(lines.ids, lines.rows);
    return true;
  };
  const auto one = [this](Lines& lines, std::string_view line) {
    read_ids(line, lines.ids);
    const std::string text = tokenizer.decode(lines.ids);
    append(lines.rows, json ? json_quote(text) : text);
  };
  LineMap(input, {all, one}).write(out, workers);
}

}  // namespace megalith
