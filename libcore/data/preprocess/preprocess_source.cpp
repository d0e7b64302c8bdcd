#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/shell_word.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/data/preprocess/corpus_files.h"
#include "libcore/data/preprocess/preprocess_stages.h"
#include "libcore/io/ahead/file_pieces.h"
#include "libcore/io/parquet/parquet_footer.h"
#include "libcore/io/parquet/parquet_records.h"
#include "libcore/io/streams/input_stream.h"

namespace megalith {
namespace {

/// Files of at most this size are small: several are read together, and none is opened before it is read.
constexpr uint64_t kSmallFile = uint64_t{1} << 14;

InputFile look_at(CorpusFile&& named) {
  const std::string& path = named.path;
  if (path == "-") {
    struct stat info {};
    if (::fstat(STDIN_FILENO, &info) != 0)
      fail(ErrorKind::kNoInput, "stdin: cannot read: ", std::strerror(errno));
    return {.path = path, .pipe = true};
  }
  const auto facts = named.facts ? named.facts : facts_of(path);
  if (!facts) fail(ErrorKind::kNoInput, path, ": cannot open: ", std::strerror(errno));
  if (!facts->regular) return {.path = path, .pipe = true};
  InputFile file{
      .path = std::move(named.path), .size = facts->size, .modified = facts->modified, .id = facts->id};
  file.unseen =
      file.size <= kSmallFile && compression_of(file.path).empty() && !file.path.ends_with(".parquet");
  if (!file.unseen) {
    const std::string head = head_of_file(file.path);
    file.parquet = begins_as_parquet(head);
    file.compressed = file.parquet || begins_compressed(head);
  }
  return file;
}

}  // namespace

std::string shown_input(const std::string& path) {
  return path == "-" ? "stdin" : path;
}

std::string shown_place(const InputFile& file, const TextPlace& at) {
  if (file.parquet) return concat(file.path, ": row ", at.line);
  std::string place = concat(shown_input(file.path), ":", at.line, ":", at.byte);
  const StreamPlace& begin = file.part.begin;
  if (begin == StreamPlace{}) return place;
  const std::string skipped = begin.skip > 0 ? concat(" and ", begin.skip, " decompressed ones") : "";
  return concat(place, " (counted from byte ", begin.at + 1, skipped, ")");
}

InputFile look_at_part(const PlannedFile& file, const ShardPart& part) {
  InputFile input = look_at({file.path});
  input.part = part.part;
  input.size = part.bytes;
  return input;
}

std::vector<InputFile> look_at_inputs(const std::vector<std::string>& inputs, TextUnit unit) {
  constexpr size_t kNamed = 20;  // a folder may have a file for each text
  std::vector<InputFile> files;
  for (CorpusFile& file : corpus_entries(inputs, unit)) {
    files.push_back(look_at(std::move(file)));
    if (files.size() <= kNamed) log("Opening ", printable(files.back().path));
  }
  if (files.size() > kNamed)
    log("Opening ", format_count(static_cast<int64_t>(files.size() - kNamed)), " more");
  return files;
}

std::vector<InputFile> look_at_objects(const PreprocessConfig& config,
                                       const std::vector<std::string>& names) {
  constexpr std::string_view kPlace = "{}";
  std::vector<InputFile> objects;
  for (const std::string& name : names) {
    InputFile object{.path = name, .pipe = true, .parquet = name.ends_with(".parquet")};
    std::string_view rest = config.input_command;
    for (size_t at = rest.find(kPlace); at != std::string_view::npos; at = rest.find(kPlace)) {
      object.command.append(rest.substr(0, at)).append(single_quoted(name));
      rest.remove_prefix(at + kPlace.size());
    }
    object.command.append(rest);
    objects.push_back(std::move(object));
  }
  log("Reading ", format_count(static_cast<int64_t>(objects.size())),
      objects.size() == 1 ? " object" : " objects", " with `", config.input_command, "`");
  return objects;
}

std::vector<InputFile> look_at_all(const PreprocessConfig& config) {
  if (config.input_command.empty()) return look_at_inputs(config.inputs, config.text);
  return look_at_objects(config, listed_objects(config.inputs));
}

/// The size of the next batch. Batches become smaller towards the end of the last file, so that no worker
/// ends long after the others.
size_t DocumentSource::batch_bytes() const {
  constexpr size_t kMin = size_t{1} << 14;
  const InputFile& file = files_[at_];
  // the batch of a small file takes no more memory than the file
  const size_t bytes =
      file.unseen ? std::min<size_t>(limits_.lines.bytes, file.size + 1) : limits_.lines.bytes;
  const uint64_t consumed = reader_->consumed();
  if (limits_.workers == 1 || at_ + 1 < files_.size() || file.pipe || consumed > file.size) return bytes;
  return std::clamp<size_t>((file.size - consumed) / (2 * limits_.workers), std::min(kMin, bytes), bytes);
}

std::vector<size_t> files_to_decode_ahead(const std::vector<InputFile>& files, size_t from) {
  std::vector<size_t> ahead;
  for (size_t i = from; i < files.size(); ++i) {
    const InputFile& file = files[i];
    const bool whole = file.part.begin == StreamPlace{} && !file.part.end;
    if (file.compressed && !file.parquet && whole) ahead.push_back(i);
  }
  if (ahead.size() == 1 && !pieces_of(files[ahead.front()].path)) ahead.clear();
  return ahead;
}

/// As many bytes for each thread as xz -6 -T puts into a block: pieces of this size are made side by side.
void DocumentSource::begin_decoding() {
  constexpr uint64_t kBytesEach = uint64_t{24} << 20;
  if (limits_.ahead.empty()) return;
  std::vector<std::string> paths;
  for (const size_t file : limits_.ahead) paths.push_back(files_[file].path);
  ahead_ = std::make_unique<DecodeAhead>(std::move(paths),
                                         AheadLimits{limits_.decoders, kBytesEach * limits_.decoders});
}

/// `as_corpus`: looks whether it is Parquet, which opens a file once more.
std::unique_ptr<RecordReader> DocumentSource::open(bool as_corpus) {
  const InputFile& file = files_[at_];
  const ReaderMark from = std::exchange(from_, {});
  if (std::binary_search(limits_.ahead.begin(), limits_.ahead.end(), at_)) {
    ahead_->next_file();
    return open_records({file.path, *ahead_}, limits_.text, limits_.lines, &interrupt_, from);
  }
  const InputOrigin origin{file.path, file.command};
  if (!as_corpus) return open_records(origin, limits_.text, limits_.lines, &interrupt_, from, file.part);
  return open_corpus(origin, {limits_.text, limits_.keys}, limits_.lines, &interrupt_, from, file.part);
}

/// Reads the next lines of the current file.
bool DocumentSource::read(DocumentBatch& batch, const std::function<void(size_t)>& grow) {
  const InputFile& file = files_[at_];
  const ReaderMark from = from_;  // of Parquet it has a row and no bytes
  const bool begins = !reader_ && from.bytes == 0;
  if (!reader_) reader_ = open(!file.command.empty() || file.pipe || file.parquet);
  reader_->close_batches_at(batch_bytes());
  const bool more = reader_->next(batch.lines, grow);
  if (!more || !begins || !file.unseen || !begins_as_parquet(batch.lines.all())) return more;
  from_ = from;  // open() took it
  reader_ = open(true);
  return reader_->next(batch.lines, grow);
}

bool DocumentSource::next(DocumentBatch& batch, const std::function<void(size_t)>& grow) {
  for (; at_ < files_.size(); ++at_) {
    const bool more = read(batch, grow);
    batch.bytes = batch.lines.bytes();
    batch.consumed = finished_ + reader_->consumed();
    batch.decoder_memory = reader_->decoder_memory();
    batch.end = {.input = at_, .reader = batch.lines.end(), .finished = finished_};
    if (more) return true;
    finished_ = batch.consumed;
    reader_.reset();
  }
  return false;
}

/// Whether the current file is small, and the one behind it, too. `bytes`: of the group so far.
bool DocumentSource::is_small_file_next(size_t bytes) const {
  constexpr size_t kTogether = size_t{1} << 16;
  if (at_ + 1 >= files_.size() || !files_[at_].unseen || !files_[at_ + 1].unseen) return false;
  return bytes + files_[at_ + 1].size <= std::min(kTogether, limits_.lines.bytes);
}

bool DocumentSource::next_group(BatchGroup& group, const std::function<void(size_t)>& grow) {
  constexpr size_t kMostBatches = 64;
  size_t bytes = 0;
  for (group.used = 0; group.used < kMostBatches; ++group.used) {
    if (group.used > 0 && !is_small_file_next(bytes)) break;
    DocumentBatch& batch = group.next();
    if (!next(batch, grow)) break;
    bytes += batch.bytes;
  }
  return group.used > 0;
}

}  // namespace megalith
