#include "libcore/data/preprocess.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include <glob.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/line_reader.h"
#include "libcore/base/log.h"
#include "libcore/base/pipeline.h"
#include "libcore/base/text.h"
#include "libcore/data/indexed_dataset.h"
#include "libcore/data/sidecar.h"

namespace megalith {
namespace {

using Clock = std::chrono::steady_clock;

// Bytes of input between reader and writer; one longer line goes alone.
constexpr size_t kBytesInFlight = size_t{1} << 24;
constexpr size_t kLeastChunk = size_t{1} << 16, kGreatestChunk = size_t{1} << 20, kLinesPerChunk = 4096;
// A longer line is tokenized by the writer, so that its ids are never together; a longer text in pieces.
constexpr size_t kLongLine = size_t{1} << 23, kLongText = size_t{1} << 16;
static_assert(kLongLine > kGreatestChunk && kLongLine < kBytesInFlight);
constexpr size_t kLinesNamed = 5;  // per reason, in the summary
constexpr double kMemoryPromise = 128.0 * 1024 * 1024;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string shown(const std::string& input) {
  return input == "-" ? "stdin" : input;
}

/// A pattern that names no file itself stands for the files that match it, in byte order.
std::vector<std::string> expand(const std::string& input) {
  if (input.find_first_of("*?[") == std::string::npos || file_exists(input)) return {input};
  glob_t found{};
  const int status = ::glob(input.c_str(), 0, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (status != 0) fail(ErrorKind::kNoInput, input, ": no file matches");
  std::sort(paths.begin(), paths.end());
  return paths;
}

struct InputFile {
  std::string path;
  uint64_t size = 0;  // 0: a pipe
};

/// All inputs are looked at before the work begins: a wrong name in the end of a list costs seconds, not
/// hours.
std::vector<InputFile> look_at_inputs(const std::vector<std::string>& inputs) {
  std::vector<InputFile> files;
  for (const std::string& input : inputs) {
    for (const std::string& path : expand(input)) {
      struct stat info {};
      if (path != "-") {
        if (::stat(path.c_str(), &info) != 0)
          fail(ErrorKind::kNoInput, path, ": cannot open: ", std::strerror(errno));
        if (S_ISDIR(info.st_mode)) fail(ErrorKind::kNoInput, path, ": is a folder, wanted a file");
      }
      log("Opening ", path);
      files.push_back({path, S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0});
    }
  }
  return files;
}

/// A line that gives no document.
struct BadLine {
  size_t line = 0;                       // of the chunk
  size_t byte = 0;                       // of the raw line
  std::optional<DocumentFault> fault{};  // nothing: the tokenizer refused it
  std::string detail{};
};

/// One key's documents in a chunk, end to end, as they go to the file.
struct KeyTokens {
  ByteBuffer tokens;               // in the dataset's type
  std::vector<int32_t> lengths;    // of each sequence
  std::vector<int32_t> sequences;  // of each document
  int32_t max_id = -1;
  // Texts of a document that the worker leaves to the writer; they lie in the chunk's lines. It is the
  // chunk's last document, for its line is longer than a chunk.
  std::optional<std::vector<std::string_view>> long_document;
  void clear() {
    tokens.clear();
    lengths.clear();
    sequences.clear();
    max_id = -1;
    long_document.reset();
  }
};

/// What travels through the pipeline.
struct Chunk {
  LineChunk lines;
  size_t input = 0;
  uint64_t consumed = 0;  // bytes of all inputs when this was cut
  std::vector<KeyTokens> keys;
  size_t blank_lines = 0;
  size_t longest_line = 0;
  std::vector<BadLine> bad;
};

/// The pipeline's source: all inputs, one after the other.
class Source {
 public:
  Source(std::vector<InputFile> files, LineLimits limits) : files_(std::move(files)), limits_(limits) {}

  bool next(Chunk& chunk, const std::function<void(size_t)>& grow) {
    for (; at_ < files_.size(); ++at_) {
      if (!reader_) reader_ = std::make_unique<LineReader>(files_[at_].path, limits_, &interrupt_);
      const bool more = reader_->next(chunk.lines, grow);
      chunk.consumed = finished_ + reader_->input().consumed();
      chunk.input = at_;
      if (more) return true;
      finished_ = chunk.consumed;
      reader_.reset();
    }
    return false;
  }
  void interrupt() const { interrupt_.set(); }

 private:
  std::vector<InputFile> files_;
  LineLimits limits_;
  Interrupt interrupt_;
  std::unique_ptr<LineReader> reader_;
  size_t at_ = 0;
  uint64_t finished_ = 0;  // bytes of the inputs before
};

bool is_blank(std::span<const char> line) {
  return std::all_of(line.begin(), line.end(), [](char c) { return c == ' ' || c == '\t'; });
}

std::optional<int32_t> eod_of(const PreprocessConfig& config, const Tokenizer& tokenizer) {
  return config.append_eod ? std::optional(tokenizer.eod()) : std::nullopt;
}

int32_t greatest(int32_t so_far, std::span<const int32_t> ids) {
  for (const int32_t id : ids) so_far = std::max(so_far, id);
  return so_far;
}

/// The pipeline's work, one object per worker: lines to tokens.
class Encoder {
 public:
  Encoder(const PreprocessConfig& config, const Tokenizer& tokenizer)
      : parser_(config.json_keys),
        tokenizer_(tokenizer),
        dtype_(optimal_dtype(tokenizer.vocab_size())),
        eod_(eod_of(config, tokenizer)),
        stop_at_bad_(config.on_error == OnError::kStrict),
        keys_(config.json_keys.size()) {}

  void encode(Chunk& chunk) {
    chunk.keys.resize(keys_);
    for (KeyTokens& key : chunk.keys) key.clear();
    chunk.bad.clear();
    chunk.blank_lines = chunk.longest_line = 0;
    for (size_t i = 0; i < chunk.lines.lines(); ++i) {
      encode_line(chunk, i);
      if (!chunk.bad.empty() && (stop_at_bad_ || !chunk.bad.back().fault)) break;
    }
  }

 private:
  void encode_line(Chunk& chunk, size_t i) {
    const std::span<char> line = chunk.lines.line(i);
    chunk.longest_line = std::max(chunk.longest_line, line.size());
    if (is_blank(line)) {
      ++chunk.blank_lines;
      return;
    }
    if (std::optional<DocumentProblem> problem = parser_.parse(line)) {
      chunk.bad.push_back(
          {i, chunk.lines.skipped(i) + problem->byte, problem->fault, std::move(problem->detail)});
      return;
    }
    try {
      for (size_t k = 0; k < keys_; ++k) {
        const std::span<const std::string_view> texts = parser_.texts(k);
        if (line.size() > kLongLine)
          chunk.keys[k].long_document.emplace(texts.begin(), texts.end());
        else
          encode_document(texts, chunk.keys[k]);
      }
    } catch (const Error& error) {
      chunk.bad.push_back({.line = i, .detail = error.what()});
    }
  }

  void encode_document(std::span<const std::string_view> texts, KeyTokens& out) {
    const size_t first = out.lengths.size();
    for (const std::string_view text : texts) {
      const size_t before = out.tokens.size();
      encode_text(text, out);
      const size_t length = (out.tokens.size() - before) / size_of(dtype_);
      if (length > 0) out.lengths.push_back(static_cast<int32_t>(length));  // at most a long line's
    }
    const size_t sequences = out.lengths.size() - first;
    if (eod_ && sequences > 0) {
      add_ids({&*eod_, 1}, out);
      ++out.lengths.back();
    }
    out.sequences.push_back(static_cast<int32_t>(sequences));
  }

  void encode_text(std::string_view text, KeyTokens& out) {
    if (text.size() > kLongText) {
      tokenizer_.encode_in_pieces(text, [&](std::span<const int32_t> ids) { add_ids(ids, out); });
    } else {
      ids_.clear();
      tokenizer_.encode(text, ids_);
      add_ids(ids_, out);
    }
  }

  void add_ids(std::span<const int32_t> ids, KeyTokens& out) const {
    if (const std::optional<int32_t> bad = narrow_ids(ids, dtype_, out.tokens))
      fail(ErrorKind::kData, "token id ", *bad, " does not fit ", name_of(dtype_),
           "; the tokenizer's vocabulary is larger than it says");
    out.max_id = greatest(out.max_id, ids);
  }

  DocumentParser parser_;
  const Tokenizer& tokenizer_;
  IndexedDType dtype_;
  std::optional<int32_t> eod_;
  bool stop_at_bad_;
  size_t keys_;
  std::vector<int32_t> ids_;  // of one text
};

/// One key's output.
class KeyOutput {
 public:
  KeyOutput(const PreprocessConfig& config, const std::string& key, const Tokenizer& tokenizer)
      : key_(key),
        prefix_(config.output_prefix + "_" + key + "_document"),
        tokenizer_(tokenizer),
        eod_(eod_of(config, tokenizer)),
        writer_(prefix_, optimal_dtype(tokenizer.vocab_size())) {}

  void add(const KeyTokens& chunk) {
    writer_.add_documents({chunk.tokens.data(), chunk.tokens.size()}, chunk.lengths, chunk.sequences);
    max_id_ = std::max(max_id_, chunk.max_id);
    if (chunk.long_document) add_long(*chunk.long_document);
  }

  void finish(const PreprocessConfig& config, const std::string& hash) {
    writer_.finish();
    Json options = Json::object();
    options.set("json_key", key_);
    options.set("append_eod", config.append_eod);
    write_sidecar(prefix_, {.tokenizer = tokenizer_.name(),
                            .tokenizer_hash = hash,
                            .vocab_size = tokenizer_.vocab_size(),
                            .documents = writer_.documents(),
                            .sequences = writer_.sequences(),
                            .tokens = writer_.tokens(),
                            .max_token_id = max_id_,
                            .options = std::move(options)});
  }

  const std::string& prefix() const { return prefix_; }
  const IndexedDatasetWriter& writer() const { return writer_; }

 private:
  /// A sequence is ended only when the next one has its first token, or the document ends: eod belongs to the
  /// last.
  void add_long(std::span<const std::string_view> texts) {
    bool open = false;
    for (const std::string_view text : texts) {
      bool begins = true;
      tokenizer_.encode_in_pieces(text, [&](std::span<const int32_t> ids) {
        if (ids.empty()) return;
        if (open && begins) writer_.end_sequence();
        begins = false;
        open = true;
        add_tokens(ids);
      });
    }
    if (open && eod_) add_tokens({&*eod_, 1});
    if (open) writer_.end_sequence();
    writer_.end_document();
  }

  void add_tokens(std::span<const int32_t> ids) {
    writer_.add_tokens(ids);
    max_id_ = greatest(max_id_, ids);
  }

  std::string key_, prefix_;
  const Tokenizer& tokenizer_;
  std::optional<int32_t> eod_;
  IndexedDatasetWriter writer_;
  int32_t max_id_ = -1;
};

/// The pipeline's sink: chunks in order, to the files.
class Output {
 public:
  Output(const PreprocessConfig& config, const Tokenizer& tokenizer, std::vector<InputFile> files)
      : config_(config), files_(std::move(files)), progress_("preprocess", total_size(files_), "B") {
    for (const std::string& key : config.json_keys)
      keys_.push_back(std::make_unique<KeyOutput>(config, key, tokenizer));
    if (!config.rejects.empty()) rejects_.emplace(config.rejects);
  }

  void take(Chunk& chunk) {
    if (chunk.input != input_) {
      input_ = chunk.input;
      lines_before_ = 0;
    }
    summary_.bytes += chunk.lines.bytes();
    summary_.longest_line = std::max<uint64_t>(summary_.longest_line, chunk.longest_line);
    if (!chunk.bad.empty()) take_bad_lines(chunk);
    for (size_t k = 0; k < keys_.size(); ++k) add(chunk, k);
    const KeyTokens& key = chunk.keys[0];
    count_documents(static_cast<int64_t>(key.sequences.size()) + (key.long_document ? 1 : 0));
    lines_before_ += chunk.lines.lines();
    summary_.lines += static_cast<int64_t>(chunk.lines.lines());
    summary_.blank_lines += static_cast<int64_t>(chunk.blank_lines);
    progress_.advance_to(static_cast<int64_t>(chunk.consumed),
                         concat(format_count(summary_.documents), " documents"));
    if (chunk.lines.capacity() > 2 * kGreatestChunk) chunk = Chunk{};  // a long line's memory is not kept
  }

  PreprocessSummary finish(const std::string& hash) {
    log("Done! Now finalizing.");
    if (rejects_) rejects_->commit();
    for (const auto& key : keys_) key->finish(config_, hash);
    if (summary_.skipped() > 0) log_skipped();
    for (const auto& key : keys_)
      log(key->prefix(), ": ", format_count(key->writer().documents()), " documents, ",
          format_count(key->writer().sequences()), " sequences, ", format_count(key->writer().tokens()),
          " tokens");
    if (summary_.blank_lines > 0) log("Blank lines skipped: ", format_count(summary_.blank_lines));
    if (summary_.documents == 0) warn("the input holds no document; the dataset is empty");
    log_memory();
    return summary_;
  }

 private:
  /// 0, unknown, when one of the inputs is a pipe.
  static int64_t total_size(const std::vector<InputFile>& files) {
    uint64_t total = 0;
    for (const InputFile& file : files) {
      if (file.size == 0 && (file.path == "-" || !file_exists(file.path))) return 0;
      total += file.size;
    }
    return static_cast<int64_t>(total);
  }

  void add(const Chunk& chunk, size_t k) {
    if (!chunk.keys[k].long_document) return keys_[k]->add(chunk.keys[k]);
    try {
      keys_[k]->add(chunk.keys[k]);
    } catch (const Error& error) {  // most likely by its last line's document
      fail(error.kind(), shown(files_[input_].path), ":", lines_before_ + chunk.lines.lines(), ": ",
           error.what());
    }
  }

  void count_documents(int64_t more) {
    const int64_t interval = config_.log_interval;
    for (int64_t next = summary_.documents / interval * interval + interval;
         next <= summary_.documents + more; next += interval)
      log_rate(next);
    summary_.documents += more;
  }

  void take_bad_lines(const Chunk& chunk) {
    for (const BadLine& bad : chunk.bad) {
      const std::string file = shown(files_[input_].path);
      const uint64_t number = lines_before_ + bad.line + 1;
      if (!bad.fault) fail(ErrorKind::kData, file, ":", number, ": ", bad.detail);
      if (config_.on_error == OnError::kStrict)
        fail(ErrorKind::kData, file, ":", number, ":", bad.byte + 1, ": ", name(*bad.fault), ": ", bad.detail,
             "; correct the line, or leave such lines out with --on-error skip (and --rejects FILE to keep "
             "them)");
      const auto reason = static_cast<size_t>(*bad.fault);
      if (summary_.faults[reason]++ < static_cast<int64_t>(kLinesNamed))
        places_[reason].push_back(concat(file, ":", number, ":", bad.byte + 1));
      if (rejects_) {
        const std::string_view raw = chunk.lines.raw_line(bad.line);
        rejects_->write(raw);
        if (raw.back() != '\n' && raw.back() != '\r') rejects_->write("\n");
      }
    }
  }

  void log_rate(int64_t documents) const {
    const double elapsed = seconds_since(start_);
    log("Processed ", documents, " documents (", format_double(static_cast<double>(documents) / elapsed),
        " docs/s, ", format_double(static_cast<double>(summary_.bytes) / elapsed / 1024 / 1024), " MB/s).");
  }

  void log_skipped() const {
    warn(format_count(summary_.skipped()), " of ", format_count(summary_.lines), " lines skipped",
         rejects_ ? ", kept in " + rejects_->path() : "");
    for (size_t reason = 0; reason < kDocumentFaults; ++reason) {
      const auto count = summary_.faults[reason];
      if (count == 0) continue;
      log("  ", format_count(count), " ", name(static_cast<DocumentFault>(reason)), ": ",
          join(places_[reason], ", "), count > static_cast<int64_t>(kLinesNamed) ? ", …" : "");
    }
  }

  void log_memory() const {
    rusage usage{};
    if (::getrusage(RUSAGE_SELF, &usage) != 0) return;
    const double limit = kMemoryPromise + 2 * static_cast<double>(summary_.longest_line);
    log("Memory: ", format_bytes(static_cast<double>(usage.ru_maxrss) * 1024), " at most; limit ",
        format_bytes(limit), " (128 MiB and twice the longest line)");
  }

  const PreprocessConfig& config_;
  std::vector<InputFile> files_;
  std::vector<std::unique_ptr<KeyOutput>> keys_;
  std::optional<AtomicFile> rejects_;
  PreprocessSummary summary_;
  std::array<std::vector<std::string>, kDocumentFaults> places_;
  size_t input_ = 0;
  uint64_t lines_before_ = 0;  // of this input
  Clock::time_point start_ = Clock::now();
  Progress progress_;
};

PipelineLimits pipeline_limits(const PreprocessConfig& config) {
  const auto workers = static_cast<size_t>(std::max(config.workers, 1));
  return {.workers = workers, .items = 2 * workers + 2, .weight = kBytesInFlight};
}

PreprocessSummary run_pipeline(const PreprocessConfig& config, std::vector<InputFile> files,
                               const Tokenizer& tokenizer, const std::string& hash) {
  const PipelineLimits limits = pipeline_limits(config);
  const size_t bytes = std::clamp(limits.weight / limits.items, kLeastChunk, kGreatestChunk);
  Source source(files,
                {.bytes = bytes,
                 .lines = config.chunk_size > 0 ? static_cast<size_t>(config.chunk_size) : kLinesPerChunk});
  std::vector<Encoder> encoders(limits.workers, Encoder(config, tokenizer));
  Output output(config, tokenizer, std::move(files));
  PipelineStages<Chunk> stages;
  stages.source = [&](Chunk& chunk, const auto& grow) { return source.next(chunk, grow); };
  stages.work = [&](size_t worker, Chunk& chunk) { encoders[worker].encode(chunk); };
  stages.sink = [&](Chunk& chunk) { output.take(chunk); };
  stages.weight = bytes;
  stages.interrupt = [&] { source.interrupt(); };
  Pipeline<Chunk>(limits, std::move(stages)).run();
  return output.finish(hash);
}

}  // namespace

void PreprocessConfig::finish() {
  if (workers == 0) workers = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

void PreprocessConfig::validate(Problems& problems) const {
  if (split_sentences)
    problems.add(
        "--split-sentences is not supported; give each document's sentences as a list of strings, which are "
        "kept apart");
  if (!rejects.empty() && on_error == OnError::kStrict) problems.add("--rejects needs --on-error skip");
  std::set<std::string> seen;
  for (const std::string& key : json_keys) {
    if (!seen.insert(key).second) problems.add("--json-keys names ", quote(key), " twice");
    if (key.find('/') != std::string::npos)
      problems.add("--json-keys ", quote(key), " cannot be part of a file name; wanted a key without \"/\"");
  }
  if (json_keys.empty()) problems.add("--json-keys names no key");
  if (std::count(inputs.begin(), inputs.end(), "-") > 1) problems.add("--input names stdin (\"-\") twice");
}

int64_t PreprocessSummary::skipped() const {
  return std::accumulate(faults.begin(), faults.end(), int64_t{0});
}

PreprocessSummary preprocess(const PreprocessConfig& config, const Tokenizer& tokenizer,
                             const std::string& hash) {
  return run_pipeline(config, look_at_inputs(config.inputs), tokenizer, hash);
}

void run_preprocess(const PreprocessConfig& config, const TokenizerConfig& files) {
  const Clock::time_point start = Clock::now();
  std::vector<InputFile> inputs = look_at_inputs(config.inputs);
  log("> building ", files.type, " tokenizer ...");
  const TokenizerFiles named = {.type = files.type,
                                .vocab = files.vocab,
                                .merges = files.merges,
                                .model = files.model,
                                .null_vocab_size = config.vocab_size};
  const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(named);
  const int64_t size = tokenizer->vocab_size();
  const int64_t padded = (size + config.vocab_divisor - 1) / config.vocab_divisor * config.vocab_divisor;
  log(" > padded vocab (size: ", size, ") with ", padded - size, " dummy tokens (new size: ", padded, ")");
  log("Vocab size: ", size);
  log("Output prefix: ", config.output_prefix);
  if (config.dataset_impl != "mmap")
    warn("--dataset-impl ", config.dataset_impl,
         ": the mmap layout is written, which every current reader takes");
  log("Time to startup: ", format_double(seconds_since(start)));
  run_pipeline(config, std::move(inputs), *tokenizer, tokenizer_hash(named));
}

}  // namespace megalith
