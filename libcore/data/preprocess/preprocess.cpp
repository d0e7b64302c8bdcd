#include "libcore/data/preprocess/preprocess.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

#include <malloc.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/machine/proc.h"
#include "libcore/base/process.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/config/thread_limit.h"
#include "libcore/config/tokenizer_config.h"
#include "libcore/config/vocab_padding.h"
#include "libcore/data/indexed/sidecar.h"
#include "libcore/data/preprocess/preprocess_stages.h"
#include "libcore/io/files/file.h"
#include "libcore/io/run/run_files.h"
#include "libcore/io/streams/stop_signal.h"
#include "libcore/text/formats/make_tokenizer.h"
#include "libcore/text/formats/null_tokenizer.h"
#include "libcore/threads/pipeline.h"

namespace megalith {
namespace {

// The maximum number of input bytes that are in the pipeline at a time. A longer line passes through it
// alone.
constexpr size_t kBytesInFlight = size_t{1} << 24;
constexpr size_t kBatchBytes = size_t{1} << 18;  // fits in the second-level cache together with its tokens
// Blank lines of any length are not errors. But a line that exceeds --max-document-bytes by this much is
// taken for a bad line, without a check whether it is blank.
constexpr size_t kSurelyNoBlanks = size_t{1} << 24;
constexpr size_t kMinBatch = size_t{1} << 16, kLinesPerBatch = 4096;
// The number of batches that may be in the pipeline in addition to two per thread. The writer keeps the
// batches' order, so with fewer, one batch of unusual text or a slow disk would stop the other workers.
constexpr size_t kBatchesAhead = 6;
static_assert(kLongLine > kBatchBytes && kLongLine < kBytesInFlight);

/// Limits of the batches of `bytes` bytes. If a line that is too long ends the run, its end need not be
/// found.
LineLimits line_limits(const PreprocessConfig& config, size_t bytes) {
  const bool ends_at_long_lines = config.max_document_bytes > 0 && config.on_error == OnError::kStrict;
  const auto longest = static_cast<size_t>(config.max_document_bytes);
  return {.bytes = bytes,
          .lines = config.chunk_size > 0 ? static_cast<size_t>(config.chunk_size) : kLinesPerBatch,
          .longest = longest,
          .refused = ends_at_long_lines ? longest + kSurelyNoBlanks : 0};
}

size_t workers_of(const PreprocessConfig& config) {
  return static_cast<size_t>(std::max(config.workers, 1));
}

/// The limits of the pipeline. If it decompresses the input, there is one thread more than config.workers,
/// since that is as much work as tokenizing. `ahead`: other threads do that.
PipelineLimits limits_of(const PreprocessConfig& config, const std::vector<InputFile>& files, bool ahead) {
  const bool compressed =
      std::any_of(files.begin(), files.end(), [](const auto& file) { return file.compressed; });
  const size_t threads = workers_of(config) + (compressed && !ahead ? 1 : 0);
  return {
      .workers = threads, .items = threads == 1 ? 1 : 2 * threads + kBatchesAhead, .weight = kBytesInFlight};
}

/// The pipeline: lines of the inputs -> tokens -> the datasets' files.
class DocumentPipeline {
 public:
  DocumentPipeline(const Job& job, const std::vector<InputFile>& files, BatchSink& output)
      : job_(job),
        output_(output),
        ahead_(files_to_decode_ahead(files, output.start().input)),
        limits_(limits_of(job.config, files, !ahead_.empty())),
        batch_bytes_(std::clamp(kBytesInFlight / limits_.items, kMinBatch, kBatchBytes)),
        lines_(files,
               {line_limits(job.config, batch_bytes_), limits_.workers, job.config.text, job.config.json_keys,
                ahead_, workers_of(job.config)},
               job.interrupt, output.start()),
        pipeline_(limits_, {.source = [this](size_t worker, BatchGroup& group,
                                             const auto& grow) { return source(worker, group, grow); },
                            .work = [this](size_t worker, BatchGroup& group) { encode(worker, group); },
                            .sink = [this](BatchGroup& group) { sink(group); },
                            .weight = batch_bytes_,
                            .interrupt = [this] { job_.interrupt.set(); }}) {
    for (size_t i = 0; i < limits_.workers; ++i) encoders_.emplace_back(job.config, job.tools);
  }
  DocumentPipeline(const DocumentPipeline&) = delete;
  DocumentPipeline& operator=(const DocumentPipeline&) = delete;

  /// Runs the pipeline. If a stop was requested, throws Stopped, even if an error occurred: the stop ends an
  /// input pipe early, which looks like an error in the data.
  void run() {
    try {
      pipeline_.run();
    } catch (...) {
      stop_if_asked();
      throw;
    }
    stop_if_asked();
  }

 private:
  bool source(size_t worker, BatchGroup& group, const std::function<void(size_t)>& grow) {
    group.used = 0;
    encoders_[worker].lend_memory(group.next());
    return lines_.next_group(group, grow);
  }
  void encode(size_t worker, BatchGroup& group) {
    for (size_t i = 0; i < group.used; ++i) encoders_[worker].encode(group.batches[i]);
  }
  void sink(BatchGroup& group) {
    for (size_t i = 0; i < group.used; ++i) output_.take(group.batches[i]);
    stop_if_asked();
  }

  Job job_;
  BatchSink& output_;
  std::vector<size_t> ahead_;
  PipelineLimits limits_;
  size_t batch_bytes_;
  DocumentSource lines_;
  std::vector<DocumentEncoder> encoders_;
  Pipeline<BatchGroup> pipeline_;
};

/// Adds the files that a run with --resume keeps until its end.
void add_kept_files(const PreprocessConfig& config, RunFiles& files) {
  const auto keeps = [&](const char* option, const std::string& path) {
    files.writes(option, AtomicFile::partial_name(path));
  };
  const std::string journal = PreprocessJournal::path_of(config.output_prefix);
  files.writes("--resume", journal);
  keeps("--resume", journal);
  keeps("--resume", config.output_prefix + ".hashes");
  for (const std::string& key : config.json_keys)
    for (const char* const end : {".bin", ".lengths", ".documents"})
      keeps("--output-prefix", config.prefix_of(key) + end);
  if (!config.rejects.empty()) keeps("--rejects", config.rejects);
}

/// Adds the input files that may be outputs: those of which it is not known that they are other files. A
/// folder may have a file for each text, and each that is added takes memory.
void add_inputs(const std::vector<InputFile>& inputs, RunFiles& files) {
  const std::set<std::pair<dev_t, ino_t>> written = files.written_files();
  for (const InputFile& input : inputs)
    if (input.command.empty() && (!input.id || written.contains(*input.id)))
      files.reads("--input", input.path);
}

/// An estimate of the bytes of text that the tokenizer will have to encode.
uint64_t text_size(const std::vector<InputFile>& files) {
  constexpr uint64_t kDecompressed = 4;  // the assumed ratio of decompressed to compressed size
  uint64_t size = 0;
  for (const InputFile& file : files) {
    if (file.pipe) return Tokenizer::kUnknownSize;
    size += file.compressed ? kDecompressed * file.size : file.size;
  }
  return size;
}

/// A shard's state that it cannot continue from is dropped: in an array of jobs nobody looks at one of them.
std::unique_ptr<DocumentOutput> open_output(const Job& job, RunInputs inputs) {
  const auto open = [&](RunInputs files) {
    return std::make_unique<DocumentOutput>(job.config, job.tools, std::move(files));
  };
  if (!inputs.shard) return open(std::move(inputs));
  try {
    return open(inputs);
  } catch (const Error& error) {
    const std::string journal = PreprocessJournal::path_of(job.config.output_prefix);
    const bool unusable = error.kind() == ErrorKind::kData || error.kind() == ErrorKind::kUsage;
    if (!unusable || !file_exists(journal)) throw;
    warn(error.what(), "; this shard begins again");
    remove_file(journal);
  }
  return open(std::move(inputs));
}

}  // namespace

void run_pipeline(const Job& job, const std::vector<InputFile>& files, BatchSink& sink) {
  DocumentPipeline(job, files, sink).run();
}

PreprocessSummary run_job(const Job& job, RunInputs inputs) {
  const std::unique_ptr<DocumentOutput> output = open_output(job, std::move(inputs));
  try {
    run_pipeline(job, output->files(), *output);
  } catch (const Stopped&) {
    output->save();
    throw;
  }
  return output->finish();
}

TextTools text_tools(const PreprocessConfig& config, const Tokenizer& tokenizer) {
  TextTools tools{tokenizer, tokenizer.hash()};
  if (config.split_sentences) {
    const std::string folder = find_punkt_folder(config.language);
    log("> sentences are split with ", folder);
    tools.splitter.emplace(read_punkt_parameters(folder), config.keep_newlines
                                                              ? SentenceSplitter::Blanks::kKeep
                                                              : SentenceSplitter::Blanks::kDrop);
  }
  return tools;
}

void check_files(const PreprocessConfig& config, const TokenizerConfig& tokenizer,
                 const std::vector<InputFile>& inputs, RunFiles files) {
  if (!config.input_command.empty()) files.reads("--input", config.inputs);  // the lists
  reads_tokenizer(files, tokenizer);
  for (const std::string& key : config.json_keys) {
    const std::string prefix = config.prefix_of(key), sidecar = sidecar_path(prefix);
    files.writes_dataset("--output-prefix", prefix);
    if (!file_exists(sidecar) || is_sidecar(sidecar))
      files.writes("--output-prefix", sidecar);  // a file of that name that is not a sidecar stays unchanged
  }
  if (config.resume) add_kept_files(config, files);
  files.writes("--rejects", config.rejects, config.resume ? OutputKind::kFile : OutputKind::kStream);
  add_inputs(inputs, files);
  files.check();
}

std::unique_ptr<Tokenizer> open_tokenizer(const PreprocessConfig& config, const TokenizerConfig& files,
                                          const std::vector<InputFile>& inputs) {
  log("> building ", files.type, " tokenizer ...");
  std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(tokenizer_files(files, config.vocab_size));
  tokenizer->expect(text_size(inputs));
  // gives back the memory that reading a tokenizer.json took: for 150 MB of text, the program then uses 68
  // instead of 94 MiB
  ::malloc_trim(0);
  return tokenizer;
}

void log_settings(const PreprocessConfig& config, const Tokenizer& tokenizer) {
  const int64_t size = tokenizer.vocab_size();
  log_padded_vocab(size, padded_vocab_size(size, config.vocab_divisor));
  log("Vocab size: ", size);
  if (const std::string note = null_vocabulary_note(tokenizer); !note.empty()) log(note);
  log("Output prefix: ", printable(config.output_prefix));
  if (!config.append_eod && !config.split_sentences)
    log("--append-eod is not given: nothing marks the end of a document, so a model does not learn to end a "
        "text, and --reset-position-ids finds no documents");
  if (config.dataset_impl != "mmap")
    warn("--dataset-impl ", config.dataset_impl,
         ": the mmap layout is written, which every current reader takes");
}

std::string PreprocessConfig::prefix_of(const std::string& key) const {
  return output_prefix + "_" + key + (split_sentences ? "_sentence" : "_document");
}

void PreprocessConfig::finish() {
  if (workers == 0) workers = usable_cpus();
}

void PreprocessConfig::validate(Problems& problems) const {
  require_possible_threads(workers, "workers", problems);
  if (!rejects.empty() && on_error == OnError::kStrict)
    problems.add(Opt{"rejects"}, " needs ", Opt{"on-error"}, " skip");
  std::set<std::string> seen;
  for (const std::string& key : json_keys) {
    if (!seen.insert(key).second) problems.add(Opt{"json-keys"}, " names ", quote(key), " twice");
    if (!rejects.empty() && real_path(rejects) == real_path(prefix_of(key)))
      problems.add(Opt{"rejects"}, ' ', quote(rejects),
                   " is the prefix of the datasets' names; give another name");
    if (key.find('/') != std::string::npos)
      problems.add(Opt{"json-keys"}, ' ', quote(key),
                   " cannot be part of a file name; wanted a key without \"/\"");
  }
  require_no_keys(json_keys, text, problems);
  if (json_keys.empty()) problems.add(Opt{"json-keys"}, " names no key");
  if (resume && std::count(inputs.begin(), inputs.end(), "-") > 0)
    problems.add(Opt{"resume"}, ": stdin (\"-\") cannot be read a second time; wanted files");
  validate_shards(*this, problems);
  if (!input_command.empty() && input_command.find("{}") == std::string::npos)
    problems.add(Opt{"input-command"}, ' ', quote(input_command),
                 " has no {}; write {} where the name of the object belongs");
  if (!input_command.empty() && std::count(inputs.begin(), inputs.end(), "-") > 0)
    problems.add(Opt{"input-command"}, " reads lists of names from files, not from stdin (\"-\")");
  if (std::count(inputs.begin(), inputs.end(), "-") > 1)
    problems.add(Opt{"input"}, " names stdin (\"-\") twice");
}

int64_t PreprocessSummary::skipped() const {
  return std::accumulate(faults.begin(), faults.end(), int64_t{0},
                         [](int64_t sum, const SkippedLines& fault) { return sum + fault.count; });
}

PreprocessSummary preprocess(const PreprocessConfig& config, const Tokenizer& tokenizer) {
  const Interrupt interrupt;
  std::vector<InputFile> inputs = look_at_all(config);
  const TextTools tools = text_tools(config, tokenizer);
  return run_job({config, tools, interrupt}, {std::move(inputs)});
}

int run_preprocess(const PreprocessConfig& config, const TokenizerConfig& tokenizer_config, RunFiles files) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<InputFile> inputs = look_at_all(config);
  check_files(config, tokenizer_config, inputs, std::move(files));
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(config, tokenizer_config, inputs);
  const TextTools tools = text_tools(config, *tokenizer);
  log_settings(config, *tokenizer);
  log("Time to startup: ", format_double(seconds_since(start)));
  const Interrupt interrupt;
  const StopSignal signal(&interrupt);
  try {
    run_job({config, tools, interrupt}, {std::move(inputs)});
  } catch (const Stopped& stopped) {
    tell("stopped by ", stopped.name,
         config.resume ? "; run the same command to resume"
                       : "; nothing was written (a run with --resume can be resumed)");
    return config.resume ? exit_code(ErrorKind::kComm) : 128 + stopped.signal;
  }
  return 0;
}

}  // namespace megalith
