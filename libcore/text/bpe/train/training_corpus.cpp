#include "libcore/text/bpe/train/training_corpus.h"

#include <filesystem>
#include <memory>
#include <optional>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/io/parquet/parquet_records.h"
#include "libcore/io/streams/decoder.h"
#include "libcore/json/document_json.h"
#include "libcore/json/foreign_input.h"
#include "libcore/text/pretokenize/pretokenizer.h"
#include "libcore/threads/pipeline.h"

namespace megalith {
namespace {

void count_text(std::string_view utf8, PieceCounts& counts) {
  static const FindPretokens kFind = pretokenizer(PretokenPattern::kGpt2);
  for_each_pretoken(kFind, utf8, [&](std::string_view piece) { counts.add(piece); });
}

struct Worker {
  explicit Worker(const std::vector<std::string>& keys) : parser(keys) {}
  DocumentParser parser;
  PieceCounts counts;
};

/// Some lines or texts of one file.
struct Lines {
  LineBatch batch;
  std::string path;
  uint64_t bytes_done = 0;  // bytes of all files up to the end of this batch
};

/// The longest line or text that is read; 0: any length. A whole file may be a text of any length if its size
/// is known beforehand, which that of a compressed file or of a pipe is not.
size_t longest(const std::string& path, TextUnit unit) {
  const bool known_size = std::filesystem::is_regular_file(path) && compression_of(path).empty();
  return unit == TextUnit::kFile && known_size ? 0 : kLongestLine;
}

class LineSource {
 public:
  explicit LineSource(const TrainingCorpus& corpus) : corpus_(corpus) {}

  bool next(Lines& lines, const std::function<void(size_t)>& grow) {
    while (!reader_ || !reader_->next(lines.batch, grow)) {
      if (reader_) bytes_before_ += reader_->consumed();
      if (next_file_ == corpus_.files.size()) return false;
      const std::string& path = corpus_.files[next_file_++];
      reader_ = open_corpus(path, {corpus_.text, corpus_.json_keys},
                            LineLimits{.refused = longest(path, corpus_.text)});
    }
    lines.path = corpus_.files[next_file_ - 1];
    lines.bytes_done = bytes_before_ + reader_->consumed();
    return true;
  }

 private:
  const TrainingCorpus& corpus_;
  size_t next_file_ = 0;
  std::unique_ptr<RecordReader> reader_;
  uint64_t bytes_before_ = 0;
};

[[noreturn]] void fail_at(const Lines& lines, size_t i, const DocumentProblem& problem, bool plain_text) {
  const size_t byte = lines.batch.skipped(i) + problem.byte;
  const TextPlace place = lines.batch.place(i, byte);
  BadRecord bad = bad_record(lines.path, lines.batch, i);
  bad.fault = problem.fault;
  bad.byte = byte;
  bad.plain_text = plain_text;
  const std::string advice = advice_on(bad);
  fail(ErrorKind::kData, lines.path, ":", place.line, ":", place.byte, ": ", name(problem.fault), ": ",
       problem.detail, advice.empty() ? "" : "; ", advice);
}

void count_lines(Lines& lines, const TrainingCorpus& corpus, Worker& worker) {
  const bool plain_text = corpus.text != TextUnit::kNone;
  for (size_t i = 0; i < lines.batch.lines(); ++i) {
    const std::span<char> line = lines.batch.line(i);
    const std::string_view text(line.data(), line.size());
    if (trim(text).empty()) continue;
    if (const auto problem = plain_text ? check_text(text) : worker.parser.parse(line))
      fail_at(lines, i, *problem, plain_text);
    if (plain_text) count_text(text, worker.counts);
    for (size_t key = 0; key < corpus.json_keys.size(); ++key)
      for (std::string_view value : worker.parser.texts(key)) count_text(value, worker.counts);
  }
}

/// Total size of the files; 0 (unknown) if one of them is a pipe, which must not be opened twice.
int64_t total_bytes(const std::vector<std::string>& files) {
  uint64_t total = 0;
  for (const std::string& file : files) {
    if (!std::filesystem::is_regular_file(file)) return 0;
    total += file_size(file);
  }
  return static_cast<int64_t>(total);
}

}  // namespace

PieceCounts count_pretokens(const TrainingCorpus& corpus) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (size_t i = 0; i < corpus.workers; ++i) workers.push_back(std::make_unique<Worker>(corpus.json_keys));
  LineSource source(corpus);
  Progress progress("count", total_bytes(corpus.files), "B");
  PipelineStages<Lines> stages{
      .source = [&](size_t, Lines& lines, const auto& grow) { return source.next(lines, grow); },
      .work = [&](size_t worker, Lines& lines) { count_lines(lines, corpus, *workers[worker]); },
      .sink = [&](Lines& lines) { progress.advance_to(static_cast<int64_t>(lines.bytes_done)); },
      .weight = LineLimits{}.bytes};
  Pipeline<Lines>({.workers = corpus.workers, .items = 2 * corpus.workers + 2}, std::move(stages)).run();
  for (size_t i = 1; i < workers.size(); ++i) {
    workers[0]->counts.add(workers[i]->counts);
    workers[i].reset();
  }
  return std::move(workers[0]->counts);
}

}  // namespace megalith
