#include "libcore/text/bpe/train/training_corpus.h"

#include <filesystem>
#include <memory>
#include <optional>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/io/files/file.h"
#include "libcore/io/streams/line_reader.h"
#include "libcore/json/document_json.h"
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

/// Some lines of one file, and their place in it.
struct Lines {
  LineBatch batch;
  std::string path;
  uint64_t first_line = 0;  // from 1
  uint64_t bytes_done = 0;  // bytes of all files up to the end of this batch
};

class LineSource {
 public:
  explicit LineSource(const std::vector<std::string>& files) : files_(files) {}

  bool next(Lines& lines, const std::function<void(size_t)>& grow) {
    while (!reader_ || !reader_->next(lines.batch, grow)) {
      if (reader_) bytes_before_ += reader_->input().consumed();
      if (next_file_ == files_.size()) return false;
      reader_ = std::make_unique<LineReader>(files_[next_file_++], LineLimits{.refused = kLongestLine});
      line_ = 1;
    }
    lines.path = files_[next_file_ - 1];
    lines.first_line = line_;
    line_ += lines.batch.lines();
    lines.bytes_done = bytes_before_ + reader_->input().consumed();
    return true;
  }

 private:
  const std::vector<std::string>& files_;
  size_t next_file_ = 0;
  std::unique_ptr<LineReader> reader_;
  uint64_t line_ = 1, bytes_before_ = 0;
};

void count_lines(Lines& lines, size_t keys, Worker& worker) {
  for (size_t i = 0; i < lines.batch.lines(); ++i) {
    const std::span<char> line = lines.batch.line(i);
    if (trim({line.data(), line.size()}).empty()) continue;
    if (const auto problem = worker.parser.parse(line))
      fail(ErrorKind::kData, lines.path, ":", lines.first_line + i, ":",
           problem->byte + lines.batch.skipped(i) + 1, ": ", name(problem->fault), ": ", problem->detail);
    for (size_t key = 0; key < keys; ++key)
      for (std::string_view text : worker.parser.texts(key)) count_text(text, worker.counts);
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

PieceCounts count_json(const TrainingCorpus& corpus) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (size_t i = 0; i < corpus.workers; ++i) workers.push_back(std::make_unique<Worker>(corpus.json_keys));
  LineSource source(corpus.files);
  Progress progress("count", total_bytes(corpus.files), "B");
  PipelineStages<Lines> stages{
      .source = [&](size_t, Lines& lines, const auto& grow) { return source.next(lines, grow); },
      .work = [&](size_t worker,
                  Lines& lines) { count_lines(lines, corpus.json_keys.size(), *workers[worker]); },
      .sink = [&](Lines& lines) { progress.advance_to(static_cast<int64_t>(lines.bytes_done)); },
      .weight = LineLimits{}.bytes};
  Pipeline<Lines>({.workers = corpus.workers, .items = 2 * corpus.workers + 2}, std::move(stages)).run();
  for (size_t i = 1; i < workers.size(); ++i) {
    workers[0]->counts.add(workers[i]->counts);
    workers[i].reset();
  }
  return std::move(workers[0]->counts);
}

PieceCounts count_files(const TrainingCorpus& corpus) {
  PieceCounts counts;
  Progress progress("count", total_bytes(corpus.files), "B");
  int64_t done = 0;
  for (const std::string& path : corpus.files) {
    const MappedFile file(path);
    const size_t good = valid_utf8_prefix(file.text());
    if (good < file.size()) fail(ErrorKind::kData, path, ": byte ", good, " is not valid UTF-8");
    count_text(file.text(), counts);
    progress.advance_to(done += static_cast<int64_t>(file.size()));
  }
  return counts;
}

}  // namespace

PieceCounts count_pretokens(const TrainingCorpus& corpus) {
  return corpus.json_keys.empty() ? count_files(corpus) : count_json(corpus);
}

}  // namespace megalith
