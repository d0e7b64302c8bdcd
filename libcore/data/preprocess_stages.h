#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/base/byte_buffer.h"
#include "libcore/base/document_json.h"
#include "libcore/base/file.h"
#include "libcore/base/line_reader.h"
#include "libcore/base/log.h"
#include "libcore/data/indexed_dataset.h"
#include "libcore/data/preprocess.h"

/// The three stages of preprocess() and what travels between them. For preprocess.cpp only.
namespace megalith {

/// Chunks are cut at the end of the line that reaches their bytes, which are at most these.
constexpr size_t kGreatestChunk = size_t{1} << 20;
/// A longer line is tokenized by the writer, so that its ids are never together in memory.
constexpr size_t kLongLine = size_t{1} << 23;

struct InputFile {
  std::string path;
  uint64_t size = 0;
  bool pipe = false;  // size is not known
};

/// Inputs as named, patterns expanded. All are looked at before the work begins: a wrong name in the end of a
/// list costs seconds, not hours. kNoInput.
std::vector<InputFile> look_at_inputs(const std::vector<std::string>& inputs);

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
struct DocumentChunk {
  LineChunk lines;
  size_t input = 0;
  uint64_t consumed = 0;  // bytes of all inputs when this was cut
  std::vector<KeyTokens> keys;
  size_t blank_lines = 0;
  size_t longest_line = 0;
  std::vector<BadLine> bad;
};

/// The pipeline's source: all inputs, one after the other.
class DocumentSource {
 public:
  DocumentSource(std::vector<InputFile> files, LineLimits limits)
      : files_(std::move(files)), limits_(limits) {}

  bool next(DocumentChunk& chunk, const std::function<void(size_t)>& grow);
  /// Ends next() where it waits for a pipe; for another thread.
  void interrupt() const { interrupt_.set(); }

 private:
  std::vector<InputFile> files_;
  LineLimits limits_;
  Interrupt interrupt_;
  std::unique_ptr<LineReader> reader_;
  size_t at_ = 0;
  uint64_t finished_ = 0;  // bytes of the inputs before
};

/// The pipeline's work, one object per worker: lines to tokens.
class DocumentEncoder {
 public:
  DocumentEncoder(const PreprocessConfig& config, const Tokenizer& tokenizer);

  /// Fills everything but `lines`, `input` and `consumed`. In strict mode the last bad line is the only one,
  /// and nothing behind it is looked at.
  void encode(DocumentChunk& chunk);

 private:
  void encode_line(DocumentChunk& chunk, size_t i);
  void encode_document(std::span<const std::string_view> texts, KeyTokens& out);
  void encode_text(std::string_view text, KeyTokens& out);
  void add_ids(std::span<const int32_t> ids, KeyTokens& out) const;

  DocumentParser parser_;
  const Tokenizer& tokenizer_;
  IndexedDType dtype_;
  std::optional<int32_t> eod_;
  bool stop_at_bad_;
  size_t keys_;
  std::vector<int32_t> ids_;  // of one text
};

std::optional<int32_t> eod_of(const PreprocessConfig& config,
                              const Tokenizer& tokenizer);  // nothing: not appended
int32_t greatest(int32_t so_far, std::span<const int32_t> ids);

/// The pipeline's sink: chunks in order, to the files.
class DocumentOutput {
 public:
  DocumentOutput(const PreprocessConfig& config, const Tokenizer& tokenizer, std::vector<InputFile> files);
  ~DocumentOutput();

  /// Writes the chunk's documents; throws at its first bad line in strict mode, else counts and keeps it.
  void take(DocumentChunk& chunk);
  /// Puts all files in place and logs the summary.
  PreprocessSummary finish(const std::string& tokenizer_hash);

 private:
  class Key;
  void add(const DocumentChunk& chunk, size_t k);
  void count_documents(int64_t more);
  void take_bad_line(const DocumentChunk& chunk, const BadLine& bad);
  void log_rate(int64_t documents) const;
  void log_skipped() const;
  void log_memory() const;

  const PreprocessConfig& config_;
  std::vector<InputFile> files_;
  std::vector<std::unique_ptr<Key>> keys_;
  std::optional<AtomicFile> rejects_;
  PreprocessSummary summary_;
  std::array<std::vector<std::string>, kDocumentFaults> places_;
  size_t input_ = 0;
  uint64_t lines_before_ = 0;  // of this input
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Progress progress_;
};

}  // namespace megalith
