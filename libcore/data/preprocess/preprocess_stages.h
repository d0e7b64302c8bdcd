#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "libcore/base/log.h"
#include "libcore/data/indexed/indexed_dataset.h"
#include "libcore/data/indexed/sidecar.h"
#include "libcore/data/preprocess/content_set.h"
#include "libcore/data/preprocess/preprocess.h"
#include "libcore/data/preprocess/shard_hashes.h"
#include "libcore/io/ahead/decode_ahead.h"
#include "libcore/io/files/file.h"
#include "libcore/io/files/kept_bytes.h"
#include "libcore/io/files/scratch_file.h"
#include "libcore/io/run/lock_file.h"
#include "libcore/io/streams/text_reader.h"
#include "libcore/json/document_json.h"
#include "libcore/json/json.h"
#include "libcore/json/json_fields.h"
#include "libcore/text/id_buffer.h"
#include "libcore/text/sentences/sentence_splitter.h"

/// The three stages of preprocess() and the data that they exchange. Only for preprocess*.cpp.
namespace megalith {

struct DatasetPair;

/// If a long line has made a batch larger than this, the batch's memory is freed after use. Otherwise every
/// batch would in time grow to the longest line.
constexpr size_t kKeptBatch = size_t{1} << 21;
/// A line with more bytes than this is long: its ids are never all in memory, but are kept on the disk until
/// they are written.
constexpr size_t kLongLine = size_t{1} << 23;

struct InputFile {
  std::string path;
  uint64_t size = 0;
  int64_t modified = 0;                            // nanoseconds
  std::optional<std::pair<dev_t, ino_t>> id = {};  // of a regular file
  StreamPart part = {};                            // what of the file is read; `size` counts only that
  bool pipe = false;                               // not a regular file: size is not known
  bool compressed = false;  // compressed, as far as is known before reading; Parquet counts as such
  bool parquet = false;
  bool unseen = false;       // a small file that was not opened: it may be compressed or Parquet nevertheless
  std::string command = {};  // which reads the object `path`; empty: the file is opened
};

/// The input files in the order of `inputs`, with patterns and folders expanded. All are checked before the
/// work begins, so that a wrong name at the end of a list costs seconds, not hours. kNoInput.
std::vector<InputFile> look_at_inputs(const std::vector<std::string>& inputs,
                                      TextUnit unit = TextUnit::kNone);
/// The objects of these names as inputs: each with its command, which is config.input_command with the quoted
/// name in place of each {}. Logs their number.
std::vector<InputFile> look_at_objects(const PreprocessConfig& config, const std::vector<std::string>& names);
/// The inputs of a run that is not divided into shards: files, or the objects of the lists. kNoInput.
std::vector<InputFile> look_at_all(const PreprocessConfig& config);
/// What a shard reads of a file.
InputFile look_at_part(const PlannedFile& file, const ShardPart& part);
std::string shown_input(const std::string& path);  // "stdin" for "-"
/// A place in an input, for messages: "FILE:LINE:BYTE". In a part of a file, which may begin anywhere, these
/// are counted from its first byte, which is named. In Parquet: "FILE: row ROW", counted in the whole file.
std::string shown_place(const InputFile& file, const TextPlace& at);

/// What a run reads.
struct RunInputs {
  std::vector<InputFile> files;
  std::optional<ShardRecord> shard = {};  // set if these are the inputs of a shard; without its rejects
};

/// The tokenizer and the sentence splitter, which turn a document's texts into sequences.
struct TextTools {
  const Tokenizer& tokenizer;
  std::string tokenizer_hash;                     // Tokenizer::hash()
  std::optional<SentenceSplitter> splitter = {};  // empty: each text is one sequence

  /// Splits `text` into the parts that become one sequence each, and calls `take` for each part. If
  /// `is_sentence`, the text is one part.
  template <class Take>
  void each_sequence(std::string_view text, bool is_sentence, const Take& take) const {
    if (splitter && !is_sentence)
      splitter->split_in_parts(text, take);
    else
      take(text);
  }
};

/// A line that gives no document because of an error.
struct BadLine {
  size_t line = 0;  // its number in the batch
  size_t byte = 0;  // offset in the raw line
  DocumentFault fault{};
  std::string detail{};
  std::string raw{};  // the original line, if parsing changed it and it is not long
};

/// The documents of a batch for one key, end to end, as they are written to the file. The object is aligned
/// to cache lines, since different threads work on different batches (see Pipeline::ItemSlot).
struct alignas(64) KeyTokens {
  /// `part_bytes`: see IdBuffer.
  explicit KeyTokens(IndexedDType dtype, size_t part_bytes = IdBuffer::kPartBytes)
      : tokens(size_of(dtype), part_bytes) {}
  IdBuffer tokens;
  // the tokens of the last line if it is long; they follow `tokens`
  std::unique_ptr<ScratchFile> long_tokens;
  std::vector<int32_t> lengths;    // number of tokens of each sequence
  std::vector<int32_t> sequences;  // number of sequences of each document
  int32_t max_id = -1;
  void clear() {
    tokens.clear();
    long_tokens.reset();
    lengths.clear();
    sequences.clear();
    max_id = -1;
  }
};

/// The place in the inputs up to which a run has read.
struct SourceMark {
  size_t input = 0;
  ReaderMark reader{};
  uint64_t finished = 0;  // bytes of all inputs before this one
};

/// Lines of an input and the documents made from them.
struct DocumentBatch {
  LineBatch lines;
  size_t bytes = 0;             // bytes of the lines
  SourceMark end;               // the place in the inputs after this batch
  uint64_t consumed = 0;        // bytes read of all inputs up to that place
  uint64_t decoder_memory = 0;  // bytes that the decompressor holds
  std::vector<KeyTokens> keys;
  std::unique_ptr<ScratchFile> long_line;  // the last line as it was read, if it is long and may be rejected
  std::vector<ContentHash> hashes;  // one per document, in order; empty if duplicates are not looked for
  size_t blank_lines = 0, short_documents = 0;
  size_t longest_line = 0;
  std::vector<BadLine> bad;
};

/// The item of the pipeline: a batch, or those of several small files. Their memory is reused.
struct BatchGroup {
  std::deque<DocumentBatch> batches;
  size_t used = 0;  // the first of them hold documents

  DocumentBatch& next() { return used < batches.size() ? batches[used] : batches.emplace_back(); }
};

struct BatchLimits {
  LineLimits lines;
  size_t workers;  // number of workers that share the batches
  TextUnit text = TextUnit::kNone;
  std::vector<std::string> keys = {};  // of JSON, that are wanted
  std::vector<size_t> ahead = {};      // the files that other threads decompress; see files_to_decode_ahead()
  size_t decoders = 1;                 // number of these threads
};

/// The numbers of the compressed files, from number `from` on, that threads of their own decompress. None, if
/// there is only one, and no piece of it can be decompressed without the others: the thread that reads it
/// then does that.
std::vector<size_t> files_to_decode_ahead(const std::vector<InputFile>& files, size_t from);

/// The pipeline's source: all inputs, one after the other.
class DocumentSource {
 public:
  /// `files` outlives this object.
  DocumentSource(const std::vector<InputFile>& files, const BatchLimits& limits, const Interrupt& interrupt,
                 const SourceMark& from)
      : files_(files),
        limits_(limits),
        interrupt_(interrupt),
        from_(from.reader),
        at_(from.input),
        finished_(from.finished) {
    begin_decoding();
  }

  /// Reads the next lines of one file; false at the end of the last one.
  bool next(DocumentBatch& batch, const std::function<void(size_t)>& grow);
  /// As next(). Reads several files together if they are small: a turn of the pipeline for each would take
  /// longer than its text.
  bool next_group(BatchGroup& group, const std::function<void(size_t)>& grow);

 private:
  size_t batch_bytes() const;
  bool read(DocumentBatch& batch, const std::function<void(size_t)>& grow);
  bool is_small_file_next(size_t bytes) const;
  void begin_decoding();
  std::unique_ptr<RecordReader> open(bool as_corpus);

  const std::vector<InputFile>& files_;
  BatchLimits limits_;
  const Interrupt& interrupt_;
  ReaderMark from_;                     // where reading begins in the first input to be read
  std::unique_ptr<DecodeAhead> ahead_;  // reader_ may read from it
  std::unique_ptr<RecordReader> reader_;
  size_t at_;
  uint64_t finished_;
};

/// The pipeline's work stage: turns lines into tokens. There is one object per worker.
class alignas(64) DocumentEncoder {
 public:
  DocumentEncoder(const PreprocessConfig& config, const TextTools& tools);

  /// Gives a batch that is about to be read the line memory of a batch that this worker has encoded. That
  /// memory is in this core's caches, and less memory is needed than if every batch kept its own. (With two
  /// workers this saves 2.7 of 46 MiB and 1 % of the processor time.)
  void lend_memory(DocumentBatch& batch);
  /// Encodes the batch's lines: fills all members after `decoder_memory`. In strict mode it stops at the
  /// first bad line. Then takes over the lines' memory for lend_memory(), unless the lines are still needed.
  void encode(DocumentBatch& batch);

 private:
  struct KeySizes {
    size_t tokens, lengths, sequences;
  };
  void encode_line(DocumentBatch& batch, size_t i);
  std::optional<DocumentProblem> parse(std::span<char> line);
  std::span<const std::string_view> texts(size_t key) const;
  void take_memory(DocumentBatch& batch);
  std::string keep_raw(DocumentBatch& batch, size_t i) const;
  void encode_texts(DocumentBatch& batch, size_t line_bytes);
  bool has_short_texts(size_t line_bytes) const;
  void encode_together(DocumentBatch& batch);
  void encode_gathered(DocumentBatch& batch);
  void forget_gathered();
  void end_document(size_t key, KeyTokens& out) const;
  void encode_document(size_t key, KeyTokens& out);
  int64_t encode_sequence(std::string_view text, KeyTokens& out, size_t first) const;
  bool too_short() const;
  ContentHash hash() const;
  void take_back(DocumentBatch& batch) const;
  void mark_sizes(const DocumentBatch& batch);

  const PreprocessConfig& config_;
  DocumentParser parser_;
  std::string_view text_;  // with --text: the document
  const TextTools& tools_;
  IndexedDType dtype_;
  std::optional<int32_t> eod_;
  size_t keys_;
  std::vector<KeySizes> sizes_;  // sizes for each key before the current line
  /// Short texts of a line that are encoded together: for each its key, and the ids of all.
  std::vector<std::string_view> gathered_;
  std::vector<size_t> gathered_keys_;
  size_t gathered_bytes_ = 0;
  IdBuffer together_{sizeof(int32_t)};
  ByteBuffer spare_;  // memory for lines, see lend_memory()
};

std::optional<int32_t> eod_of(const PreprocessConfig& config,
                              const Tokenizer& tokenizer);  // empty if no end-of-document id is appended

/// How much has been written for one key.
struct KeyState {
  WriterMark written{};
  int64_t max_id = -1;

  template <class V>
  void fields(V&& v) {
    v("documents", written.documents);
    v("sequences", written.sequences);
    v("tokens", written.tokens);
    v("max_id", max_id);
    v("bin_xxh64", Hex64{written.bin_hash});
    v("lengths_xxh64", Hex64{written.lengths_hash});
    v("documents_xxh64", Hex64{written.documents_hash});
  }
};

/// What a run has done so far: all that another run needs to continue it.
struct PreprocessState {
  SourceMark source;
  PreprocessSummary summary;
  // number of documents of each input file, including those left out at the user's request
  std::vector<int64_t> texts;
  KeptBytes rejects;
  uint64_t hashes = 0;  // number of document hashes kept to find duplicates
  NamedFields<KeyState> keys;
  uint64_t hashes_hash = 0;

  template <class V>
  void fields(V&& v) {  // see json/json_fields.h
    v("input", source.input);
    v("input_bytes", source.reader.bytes);
    v("line", source.reader.place.line);
    v("byte", source.reader.place.byte);
    v("after_return", source.reader.place.after_return);
    v("mode", source.reader.mode);
    v("finished", source.finished);
    v("lines", summary.lines);
    v("documents", summary.documents);
    v("blank_lines", summary.blank_lines);
    v("short_documents", summary.short_documents);
    v("duplicates", summary.duplicates);
    v("bytes", summary.bytes);
    v("longest_line", summary.longest_line);
    v("faults", summary.faults);
    v("texts", texts);
    v("rejects_bytes", rejects.bytes);
    v("rejects_xxh64", Hex64{rejects.hash});
    v("hashes", hashes);
    v("keys", keys);
    v("hashes_xxh64", Hex64{hashes_hash});
  }
};

/// The state of a run that can be interrupted, in PREFIX.resume.json.
class PreprocessJournal {
 public:
  /// Reads the state of an interrupted run, if there is one. Throws kUsage, listing the differences, if that
  /// run's identity is not `identity`; kData if the file was changed; kComm if that run is still running.
  PreprocessJournal(const std::string& output_prefix, Json identity);
  static std::string path_of(const std::string& output_prefix);
  /// The state of the interrupted run; nothing if there was none.
  const std::optional<PreprocessState>& state() const { return state_; }
  void write(const PreprocessState& state) const;
  void remove() const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  LockFile lock_;
  Json identity_;
  std::optional<PreprocessState> state_;
};

/// The options that determine the output's bytes, apart from the inputs, the keys and the tokenizer.
Json options_json(const PreprocessConfig& config, const TextTools& tools);
/// The identity of a run, which PreprocessJournal compares: all that determines what is written.
Json identity_of(const PreprocessConfig& config, const RunInputs& inputs, const TextTools& tools);
/// A hash of the tokenizer and of all options that determine what is written, but for the inputs.
std::string options_digest(const PreprocessConfig& config, const TextTools& tools);

/// The pipeline's sink.
class BatchSink {
 public:
  virtual ~BatchSink() = default;
  BatchSink() = default;
  BatchSink(const BatchSink&) = delete;
  BatchSink& operator=(const BatchSink&) = delete;

  /// The place in the inputs at which the source must begin.
  virtual const SourceMark& start() const = 0;
  /// Takes the batches in order. In strict mode, throws at the first bad line of a batch.
  virtual void take(DocumentBatch& batch) = 0;
};

/// Throws kData for a bad line. If the input seems to be neither loose JSON nor text, the message says what
/// it seems to be. Otherwise it says that such lines can be left out.
[[noreturn]] void fail_at(const PreprocessConfig& config, const InputFile& file, const DocumentBatch& batch,
                          const BadLine& bad);

/// Writes the batches to the files.
class DocumentOutput final : public BatchSink {
 public:
  DocumentOutput(const PreprocessConfig& config, const TextTools& tools, RunInputs inputs);
  ~DocumentOutput() override;

  const std::vector<InputFile>& files() const { return inputs_.files; }

  const SourceMark& start() const override { return state_.source; }
  /// Writes the batch's documents. If it does not throw, counts the bad lines and writes them to the rejects.
  void take(DocumentBatch& batch) override;
  /// Saves the state of the run, if the run can be interrupted. Does nothing after take() has thrown: the
  /// batch may have been written in part, so only the state saved before it is valid.
  void save();
  /// Puts all files in place and logs the summary. To be called after the last batch; the tokenizer may
  /// already have been destroyed.
  PreprocessSummary finish();

 private:
  class Key;
  void add_documents(const DocumentBatch& batch);
  std::vector<char> find_new(std::span<const ContentHash> hashes);
  bool remember(const ContentHash& hash);
  void count_documents(int64_t more);
  void take_bad_line(const DocumentBatch& batch, const BadLine& bad);
  std::optional<ShardRecord> shard_record() const;
  void reject(const DocumentBatch& batch, const BadLine& bad);
  void show_progress(uint64_t consumed);
  void save_if_due();
  void open_outputs(const TextTools& tools, const PreprocessState* from);
  void resume_from(const PreprocessState& from);
  void log_rate(int64_t documents) const;
  void log_summary() const;
  void log_skipped() const;
  void log_memory() const;
  double seconds() const;
  int64_t tokens() const;

  const PreprocessConfig& config_;
  RunInputs inputs_;
  PreprocessState state_;  // `hashes` and `keys` in it are up to date only when it is saved
  std::optional<PreprocessJournal> journal_;
  std::vector<std::unique_ptr<Key>> keys_;
  std::optional<LockFile> rejects_lock_;  // set if the rejects go to a file, not to a device or FIFO
  std::optional<AtomicFile> rejects_;
  Xxh64 rejects_hash_;
  ContentSet contents_;
  uint64_t seen_before_ = 0;  // hashes in contents_ that earlier shards have
  // the hashes of contents_ on the disk, if the run can be interrupted
  std::optional<ScratchFile> saved_hashes_;
  uint64_t decoder_memory_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), saved_ = start_;
  int64_t tokens_before_ = 0, documents_before_ = 0;  // what the interrupted run had done
  uint64_t bytes_before_ = 0;
  bool taking_ = false;  // true inside take(), and after take() has thrown
  int64_t total_;        // bytes of all inputs; 0: unknown
  double shown_ = 0;     // seconds() when progress_ was told of the progress last
  Progress progress_;
};

// ---- what a run of all the work and one of shards have in common (preprocess.cpp)

/// Throws kUsage if an output is also an input, or is not a file.
void check_files(const PreprocessConfig& config, const TokenizerConfig& tokenizer,
                 const std::vector<InputFile>& inputs, RunFiles files);
std::unique_ptr<Tokenizer> open_tokenizer(const PreprocessConfig& config, const TokenizerConfig& files,
                                          const std::vector<InputFile>& inputs);
TextTools text_tools(const PreprocessConfig& config, const Tokenizer& tokenizer);
/// Logs the vocabulary and the output prefix in the lines that Megatron's tool prints.
void log_settings(const PreprocessConfig& config, const Tokenizer& tokenizer);

/// What all stages of one call of preprocess() share.
struct Job {
  const PreprocessConfig& config;
  const TextTools& tools;
  const Interrupt& interrupt;
};
/// Adds a problem for each option that contradicts --shard (preprocess_shards.cpp).
void validate_shards(const PreprocessConfig& config, Problems& problems);
/// The pipeline: lines of the inputs -> documents -> the sink. Throws Stopped if a StopSignal exists and
/// receives a signal.
void run_pipeline(const Job& job, const std::vector<InputFile>& files, BatchSink& sink);
/// What the hashes of a shard's documents depend on.
HashesOf hashes_of(const PreprocessConfig& config, const ShardRecord& shard);
/// Does the work. Throws Stopped if a StopSignal exists and receives a signal; the state is then saved.
PreprocessSummary run_job(const Job& job, RunInputs inputs);

}  // namespace megalith
