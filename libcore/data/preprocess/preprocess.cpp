#include "libcore/data/preprocess/preprocess.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include <malloc.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/config/thread_limit.h"
#include "libcore/config/vocab_padding.h"
#include "libcore/data/preprocess/preprocess_stages.h"
#include "libcore/io/stop_signal.h"
#include "libcore/text/formats/tokenizer_files.h"
#include "libcore/threads/beside.h"
#include "libcore/threads/pipeline.h"

namespace megalith {
namespace {

// Bytes of input between reader and writer; one longer line goes alone.
constexpr size_t kBytesInFlight = size_t{1} << 24;
constexpr size_t kChunk = size_t{1} << 18;  // fits the second-level cache with its tokens
constexpr size_t kLeastChunk = size_t{1} << 16, kLinesPerChunk = 4096;
constexpr size_t kChunksAhead = 6;  // that others may work on beside one of slow text, for order is kept
static_assert(kLongLine > kChunk && kLongLine < kBytesInFlight);

/// One preprocess() with what all its stages see.
struct Run {
  const PreprocessConfig& config;
  const TextTools& tools;
  const StopSignal* stop;
  const Interrupt& interrupt;
  DocumentOutput& output;

  LineLimits line_limits(size_t bytes) const {
    return {.bytes = bytes,
            .lines = config.chunk_size > 0 ? static_cast<size_t>(config.chunk_size) : kLinesPerChunk,
            .longest = static_cast<size_t>(config.max_document_bytes)};
  }
  void stop_if_asked() const {
    if (stop && stop->asked()) throw PreprocessStopped{};
  }
};

/// The pipeline of one preprocess().
class Stages {
 public:
  Stages(const Run& run, const std::vector<InputFile>& files)
      : Stages(run, files, threads_for(run.config, files)) {}

  /// Throws PreprocessStopped when a stop was asked for. (It cuts a pipe short, which may look like an error
  /// of the data: it is none then.)
  void run() {
    try {
      pipeline_.run();
    } catch (...) {
      run_.stop_if_asked();
      throw;
    }
    run_.stop_if_asked();
  }

  ~Stages() { pipeline_.free_items(); }  // the disk's thread waits for as little as possible
  Stages(const Stages&) = delete;
  Stages& operator=(const Stages&) = delete;

 private:
  Stages(const Run& run, const std::vector<InputFile>& files, size_t threads)
      : run_(run),
        limits_{.workers = threads,
                .items = threads == 1 ? 1 : 2 * threads + kChunksAhead,
                .weight = kBytesInFlight},
        chunk_(std::clamp(kBytesInFlight / limits_.items, kLeastChunk, kChunk)),
        source_(files, {run.line_limits(chunk_), threads}, run.interrupt, run.output.start()),
        pipeline_(limits_, stages()) {
    for (size_t i = 0; i < threads; ++i) encoders_.emplace_back(run.config, run.tools, tokens_);
  }

  /// One more where the input is compressed: decompressing is as much work as tokenizing.
  static size_t threads_for(const PreprocessConfig& config, const std::vector<InputFile>& files) {
    const bool compressed =
        std::any_of(files.begin(), files.end(), [](const auto& file) { return file.compressed; });
    return static_cast<size_t>(std::max(config.workers, 1)) + (compressed ? 1 : 0);
  }

  PipelineStages<DocumentChunk> stages() {
    return {.source =
                [this](size_t worker, DocumentChunk& chunk, const auto& grow) {
                  encoders_[worker].lend_memory(chunk);
                  return source_.next(chunk, grow);
                },
            .work = [this](size_t worker, DocumentChunk& chunk) { encoders_[worker].encode(chunk); },
            .sink =
                [this](DocumentChunk& chunk) {
                  run_.output.take(chunk);
                  run_.stop_if_asked();
                },
            .weight = chunk_,
            .interrupt = [this] { run_.interrupt.set(); }};
  }

  Run run_;
  PipelineLimits limits_;
  size_t chunk_;
  DocumentSource source_;
  BlockPool tokens_;
  std::vector<DocumentEncoder> encoders_;
  Pipeline<DocumentChunk> pipeline_;
};

/// What asks for a stop.
struct Stop {
  const StopSignal* signal;
  const Interrupt& interrupt;
};

/// `drop_tokenizer` is called, by any thread, when the tokenizer is no longer needed.
PreprocessSummary run(const PreprocessConfig& config, const std::vector<InputFile>& files,
                      const TextTools& tools, const Stop& stop, const std::function<void()>& drop_tokenizer) {
  DocumentOutput output(config, tools, files);
  std::optional<Stages> stages(std::in_place, Run{config, tools, stop.signal, stop.interrupt, output}, files);
  try {
    stages->run();
  } catch (const PreprocessStopped&) {
    output.save();
    throw;
  }
  // Giving the memory back takes about as long as what the disk still has to do.
  const Beside drop([&] {
    stages.reset();
    std::this_thread::yield();  // to the thread that writes to the disk
    drop_tokenizer();
  });
  return output.finish();
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

/// Throws kUsage when an output is an input, or no file.
void check_files(const PreprocessConfig& config, const TokenizerConfig& tokenizer,
                 const std::vector<InputFile>& inputs) {
  RunFiles files;
  for (const InputFile& input : inputs) files.reads("--input", input.path);
  reads_tokenizer(files, tokenizer);
  for (const std::string& key : config.json_keys)
    files.writes_dataset("--output-prefix", config.prefix_of(key));
  files.writes("--rejects", config.rejects, config.resume ? OutputKind::kFile : OutputKind::kStream);
  files.check();
}

/// What the tokenizer will have to encode, about.
uint64_t text_size(const std::vector<InputFile>& files) {
  constexpr uint64_t kDecompressed = 4;  // times as large
  uint64_t size = 0;
  for (const InputFile& file : files) {
    if (file.pipe) return Tokenizer::kUnknownSize;
    size += file.compressed ? kDecompressed * file.size : file.size;
  }
  return size;
}

/// While one core is enough for what is done before the workers begin.
void prepare_quietly(const Tokenizer& tokenizer) {
  try {
    tokenizer.prepare();
  } catch (const std::exception&) {
    // The first worker will meet the same.
  }
}

}  // namespace

std::string PreprocessConfig::prefix_of(const std::string& key) const {
  return output_prefix + "_" + key + (split_sentences ? "_sentence" : "_document");
}

void PreprocessConfig::finish() {
  if (workers == 0) workers = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

void PreprocessConfig::validate(Problems& problems) const {
  require_possible_threads(workers, "workers", problems);
  if (!rejects.empty() && on_error == OnError::kStrict) problems.add("--rejects needs --on-error skip");
  std::set<std::string> seen;
  for (const std::string& key : json_keys) {
    if (!seen.insert(key).second) problems.add("--json-keys names ", quote(key), " twice");
    if (key.find('/') != std::string::npos)
      problems.add("--json-keys ", quote(key), " cannot be part of a file name; wanted a key without \"/\"");
  }
  if (json_keys.empty()) problems.add("--json-keys names no key");
  if (resume && std::count(inputs.begin(), inputs.end(), "-") > 0)
    problems.add("--resume: stdin (\"-\") cannot be read a second time; wanted files");
  if (std::count(inputs.begin(), inputs.end(), "-") > 1) problems.add("--input names stdin (\"-\") twice");
}

int64_t PreprocessSummary::skipped() const {
  return std::accumulate(faults.begin(), faults.end(), int64_t{0});
}

PreprocessSummary preprocess(const PreprocessConfig& config, const Tokenizer& tokenizer) {
  const Interrupt interrupt;
  return run(config, look_at_inputs(config.inputs), text_tools(config, tokenizer), {nullptr, interrupt},
             [] {});
}

int run_preprocess(const PreprocessConfig& config, const TokenizerConfig& files) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<InputFile> inputs = look_at_inputs(config.inputs);
  check_files(config, files, inputs);
  log("> building ", files.type, " tokenizer ...");
  std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(tokenizer_files(files, config.vocab_size));
  tokenizer->expect(text_size(inputs));
  ::malloc_trim(0);  // what reading a large tokenizer.json took, which else counts beside the caches
  std::optional<Beside> preparing;
  if (config.workers > 1) preparing.emplace([&] { prepare_quietly(*tokenizer); });
  const TextTools tools = text_tools(config, *tokenizer);
  const int64_t size = tokenizer->vocab_size();
  log_padded_vocab(size, padded_vocab_size(size, config.vocab_divisor));
  log("Vocab size: ", size);
  log("Output prefix: ", config.output_prefix);
  if (config.dataset_impl != "mmap")
    warn("--dataset-impl ", config.dataset_impl,
         ": the mmap layout is written, which every current reader takes");
  log("Time to startup: ", format_double(seconds_since(start)));
  const Interrupt interrupt;
  const StopSignal signal(&interrupt);
  try {
    run(config, inputs, tools, {&signal, interrupt}, [&] {
      preparing.reset();
      tokenizer.reset();
    });
  } catch (const PreprocessStopped&) {
    tell("stopped by ", signal.name(),
         config.resume ? "; run the same command to go on"
                       : "; nothing was written (with --resume it would go on)");
    return config.resume ? exit_code(ErrorKind::kComm) : 128 + signal.number();
  }
  return 0;
}

}  // namespace megalith
