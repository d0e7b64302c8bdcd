#include "libcore/io/parquet/parquet_records.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file_calls.h"
#include "libcore/io/files/temporary_folder.h"
#include "libcore/io/streams/stop_signal.h"

namespace megalith {

ParquetRecords::ParquetRecords(std::string path, const std::vector<std::string>& keys, LineLimits limits,
                               const ReaderMark& from, const StreamPart& part, const std::string& name)
    : RecordReader(limits),
      file_(std::move(path)),
      name_(name.empty() ? file_.path() : name),
      footer_(read_parquet_footer(file_, name_)),
      shape_(row_shape(footer_, keys, name_)),
      writer_(shape_, columns_) {
  for (const ColumnShape& column : shape_.columns) columns_.emplace_back(file_, column, name_);
  const uint64_t end = part.end ? part.end->at : file_.size();
  if (end > file_.size() || part.begin.at > end)
    fail(ErrorKind::kData, name_, ": ends ", std::max(end, part.begin.at) - file_.size(),
         " bytes before a place that this run reads from or to; it has changed");
  const size_t first = group_at(part.begin.at);
  last_group_ = group_at(end);
  part_bytes_ = end - part.begin.at;
  for (size_t i = 0; i < last_group_; ++i)
    (i < first ? first_row_ : part_rows_) += static_cast<uint64_t>(footer_.groups[i].rows);
  row_ = group_end_ = first_row_;
  group_ = first;
  if (from.place.line > 1) skip_to(from.place.line - 1);
}

/// The first row group that begins at or behind a byte.
size_t ParquetRecords::group_at(uint64_t byte) const {
  if (byte == file_.size()) return footer_.groups.size();
  const auto at = std::find_if(footer_.begins.begin(), footer_.begins.end(),
                               [&](uint64_t begin) { return begin >= byte; });
  return static_cast<size_t>(at - footer_.begins.begin());
}

void ParquetRecords::begin_group(size_t group) {
  const RowGroup& rows = footer_.groups[group];
  for (ColumnReader& column : columns_) column.begin(rows.columns[column.shape().number]);
  group_end_ = row_ + static_cast<uint64_t>(rows.rows);
}

/// Moves on to `row`, over groups without reading them.
void ParquetRecords::skip_to(uint64_t row) {
  const auto rows = [&] { return static_cast<uint64_t>(footer_.groups[group_].rows); };
  for (; group_ < last_group_ && row_ + rows() <= row; ++group_) row_ += rows();
  group_end_ = row_;
  ByteBuffer waste;
  while (row_ < row && has_row()) {
    writer_.write(waste, [](size_t, size_t, size_t) { return size_t{0}; });
    waste.clear();
    ++row_;
  }
  if (row_ != row)
    fail(ErrorKind::kData, name_, ": has ", row_, " rows up to its end, wanted ", row,
         " that were read before; it has changed");
}

/// Whether a row follows; begins its group if it is the first one there.
bool ParquetRecords::has_row() {
  while (row_ == group_end_) {
    for (const ColumnReader& column : columns_)
      if (!column.at_end()) fail_damaged(column.place(), "found values after the last row of its row group");
    if (group_ == last_group_) return false;
    begin_group(group_++);
  }
  return true;
}

/// How many of a text's `size` bytes are kept in a row that has `row` bytes, in a batch of `bytes` bytes.
size_t ParquetRecords::room(size_t bytes, size_t row, size_t size, const Grow& grow) const {
  constexpr size_t kMore = 2;  // bytes by which a row that is cut is too long
  if (limits_.refused > 0 && row + size > limits_.refused)
    fail(ErrorKind::kData, name_, ": row ", row_ + 1, " has more than ", limits_.refused,
         " bytes; wanted shorter texts");
  if (limits_.longest > 0)
    size = std::min(size, limits_.longest + kMore - std::min(limits_.longest + kMore, row));
  if (bytes + size > limits_.bytes) grow(bytes + size);
  return size;
}

bool ParquetRecords::next(LineBatch& batch, const Grow& grow) {
  stop_if_asked();
  batch.clear();
  batch.first_ = {.line = row_ + 1};
  while (batch.bytes() < limits_.bytes && batch.lines() < limits_.lines && has_row()) {
    writer_.write(batch.buffer_,
                  [&](size_t bytes, size_t row, size_t size) { return room(bytes, row, size, grow); });
    batch.ends_.push_back(batch.bytes());
    ++row_;
  }
  batch.end_ = {.place = {.line = row_ + 1}};
  return batch.lines() > 0;
}

uint64_t ParquetRecords::consumed() const {
  using Wide = unsigned __int128;
  const uint64_t done = row_ - first_row_;
  return done == part_rows_ ? part_bytes_ : static_cast<uint64_t>(Wide{part_bytes_} * done / part_rows_);
}

uint64_t ParquetRecords::decoder_memory() const {
  return std::accumulate(columns_.begin(), columns_.end(), footer_.memory,
                         [](uint64_t sum, const ColumnReader& column) { return sum + column.memory(); });
}

namespace {

constexpr std::string_view kExtension = ".parquet";

/// What a command writes, in a file without a name, which vanishes with this object and its readers.
class Spool {
 public:
  Spool(const InputOrigin& origin, const Interrupt* interrupt) : Spool() { take(origin, interrupt); }
  ~Spool() { ::close(file_); }
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  /// A path by which it can be opened as long as this object lives.
  std::string path() const { return link_of(file_); }

 private:
  Spool() : folder_(temporary_folder().string()), file_(make_nameless(folder_)) {}
  void take(const InputOrigin& origin, const Interrupt* interrupt) const {
    constexpr size_t kBlock = size_t{1} << 18;
    const std::unique_ptr<char[]> block(new char[kBlock]);
    InputStream stream(origin, interrupt);
    while (const size_t n = stream.read(block.get(), kBlock)) append_all(file_, {block.get(), n}, folder_);
    stop_if_asked();  // which ends the stream, too
  }

  std::string folder_;
  int file_;
};

/// Whether the origin is Parquet, by its content or, of a command, by its name.
bool holds_parquet(const InputOrigin& origin) {
  if (!origin.command.empty()) return origin.path.ends_with(kExtension);
  if (is_parquet(origin.path)) return true;
  std::error_code ignored;  // whoever opens it reports the error
  if (origin.path.ends_with(kExtension) && std::filesystem::is_regular_file(origin.path, ignored))
    fail(ErrorKind::kData, origin.path,
         ": is named as Parquet, but does not begin with \"PAR1\"; restore the file, or rename it");
  return false;
}

}  // namespace

std::unique_ptr<RecordReader> open_corpus(const InputOrigin& origin, const CorpusUnits& units,
                                          const LineLimits& limits, const Interrupt* interrupt,
                                          const ReaderMark& from, const StreamPart& part) {
  if (!holds_parquet(origin)) return open_records(origin, units.text, limits, interrupt, from, part);
  if (units.text != TextUnit::kNone)
    fail(ErrorKind::kUsage, origin.path,
         ": is a Parquet file, not plain text; leave --text out, and name its columns");
  std::optional<Spool> spool;
  if (!origin.command.empty()) spool.emplace(origin, interrupt);
  auto records = std::make_unique<ParquetRecords>(spool ? spool->path() : origin.path, units.keys, limits,
                                                  from, part, origin.path);
  if (!records->left_out().empty())
    log(origin.path, ": not read, since JSON cannot express them: ", join(records->left_out(), ", "));
  return records;
}

}  // namespace megalith
