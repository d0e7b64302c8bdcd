#include <algorithm>
#include <utility>

#include <sys/resource.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/data/preprocess_stages.h"
#include "libcore/data/sidecar.h"

namespace megalith {
namespace {

constexpr size_t kLinesNamed = 5;  // per reason, in the summary
constexpr double kMemoryPromise = 128.0 * 1024 * 1024;

std::string shown(const std::string& input) {
  return input == "-" ? "stdin" : input;
}

/// 0, unknown, when one of the inputs is a pipe.
int64_t total_size(const std::vector<InputFile>& files) {
  uint64_t total = 0;
  for (const InputFile& file : files) {
    if (file.pipe) return 0;
    total += file.size;
  }
  return static_cast<int64_t>(total);
}

}  // namespace

/// One key's output.
class DocumentOutput::Key {
 public:
  Key(const PreprocessConfig& config, const std::string& key, const Tokenizer& tokenizer)
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
    Sidecar sidecar{.tokenizer = tokenizer_.name(),
                    .tokenizer_hash = hash,
                    .vocab_size = tokenizer_.vocab_size(),
                    .max_token_id = max_id_,
                    .options = std::move(options)};
    writer_.describe(sidecar);
    write_sidecar(prefix_, sidecar);
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

DocumentOutput::DocumentOutput(const PreprocessConfig& config, const Tokenizer& tokenizer,
                               std::vector<InputFile> files)
    : config_(config), files_(std::move(files)), progress_("preprocess", total_size(files_), "B") {
  for (const std::string& key : config.json_keys)
    keys_.push_back(std::make_unique<Key>(config, key, tokenizer));
  if (!config.rejects.empty()) rejects_.emplace(config.rejects);
}

DocumentOutput::~DocumentOutput() = default;

void DocumentOutput::take(DocumentChunk& chunk) {
  if (chunk.input != input_) {
    input_ = chunk.input;
    lines_before_ = 0;
  }
  summary_.bytes += chunk.lines.bytes();
  summary_.longest_line = std::max<uint64_t>(summary_.longest_line, chunk.longest_line);
  for (const BadLine& bad : chunk.bad) take_bad_line(chunk, bad);
  for (size_t k = 0; k < keys_.size(); ++k) add(chunk, k);
  const KeyTokens& key = chunk.keys[0];
  count_documents(static_cast<int64_t>(key.sequences.size()) + (key.long_document ? 1 : 0));
  lines_before_ += chunk.lines.lines();
  summary_.lines += static_cast<int64_t>(chunk.lines.lines());
  summary_.blank_lines += static_cast<int64_t>(chunk.blank_lines);
  progress_.advance_to(static_cast<int64_t>(chunk.consumed),
                       concat(format_count(summary_.documents), " documents"));
  if (chunk.lines.capacity() > 2 * kGreatestChunk)
    chunk = DocumentChunk{};  // a long line's memory is not kept
}

PreprocessSummary DocumentOutput::finish(const std::string& hash) {
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

void DocumentOutput::add(const DocumentChunk& chunk, size_t k) {
  if (!chunk.keys[k].long_document) return keys_[k]->add(chunk.keys[k]);
  try {
    keys_[k]->add(chunk.keys[k]);
  } catch (const Error& error) {  // the chunk's last line holds the long document
    if (error.kind() != ErrorKind::kData) throw;
    fail(ErrorKind::kData, shown(files_[input_].path), ":", lines_before_ + chunk.lines.lines(), ": ",
         error.what());
  }
}

void DocumentOutput::count_documents(int64_t more) {
  const int64_t interval = config_.log_interval;
  for (int64_t next = summary_.documents / interval * interval + interval; next <= summary_.documents + more;
       next += interval)
    log_rate(next);
  summary_.documents += more;
}

void DocumentOutput::take_bad_line(const DocumentChunk& chunk, const BadLine& bad) {
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

void DocumentOutput::log_rate(int64_t documents) const {
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  log("Processed ", documents, " documents (", format_double(static_cast<double>(documents) / elapsed),
      " docs/s, ", format_double(static_cast<double>(summary_.bytes) / elapsed / 1024 / 1024), " MB/s).");
}

void DocumentOutput::log_skipped() const {
  warn(format_count(summary_.skipped()), " of ", format_count(summary_.lines), " lines skipped",
       rejects_ ? ", kept in " + rejects_->path() : "");
  for (size_t reason = 0; reason < kDocumentFaults; ++reason) {
    const auto count = summary_.faults[reason];
    if (count == 0) continue;
    log("  ", format_count(count), " ", name(static_cast<DocumentFault>(reason)), ": ",
        join(places_[reason], ", "), count > static_cast<int64_t>(kLinesNamed) ? ", …" : "");
  }
}

void DocumentOutput::log_memory() const {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return;
  const double limit = kMemoryPromise + 2 * static_cast<double>(summary_.longest_line);
  log("Memory: ", format_bytes(static_cast<double>(usage.ru_maxrss) * 1024), " at most; limit ",
      format_bytes(limit), " (128 MiB and twice the longest line)");
}

}  // namespace megalith
