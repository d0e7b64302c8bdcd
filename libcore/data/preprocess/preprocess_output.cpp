#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/data/indexed/dataset_pair.h"
#include "libcore/data/indexed/sidecar.h"
#include "libcore/data/preprocess/preprocess_stages.h"
#include "libcore/json/foreign_input.h"

namespace megalith {
namespace {

constexpr size_t kLinesNamed = 5;  // number of places that the summary lists for each reason

/// The part of the memory bound of preprocess() that does not depend on the inputs.
int promised_mebibytes(const PreprocessConfig& config) {
  constexpr int kEachWorker = 8, kEachKey = 4;
  return 128 + kEachWorker * std::max(0, config.workers - 2) +
         kEachKey * static_cast<int>(config.json_keys.size() - 1);
}

/// The size of all inputs in bytes; 0 (unknown) if one of them is a pipe.
int64_t total_size(const std::vector<InputFile>& files) {
  uint64_t total = 0;
  for (const InputFile& file : files) {
    if (file.pipe) return 0;
    total += file.size;
  }
  return static_cast<int64_t>(total);
}

std::string hashes_path(const PreprocessConfig& config) {
  return AtomicFile::partial_name(config.output_prefix + ".hashes");
}

const KeyState& state_of(const PreprocessState& state, const std::string& key) {
  const auto at = std::find_if(state.keys.begin(), state.keys.end(),
                               [&](const auto& named) { return named.first == key; });
  if (at == state.keys.end()) fail(ErrorKind::kData, "its state has no key ", quote(key));
  return at->second;
}

}  // namespace

void fail_at(const PreprocessConfig& config, const InputFile& file, const DocumentBatch& batch,
             const BadLine& bad) {
  BadRecord record = bad_record(file.path, batch.lines, bad.line);
  record.fault = bad.fault;
  record.byte = bad.byte;
  record.plain_text = config.text != TextUnit::kNone;
  const std::string place = shown_place(file, batch.lines.place(bad.line, bad.byte));
  const std::string what = concat(place, ": ", name(bad.fault), ": ", bad.detail, "; ");
  if (const std::string form = other_form(record); !form.empty()) fail(ErrorKind::kData, what, form);
  const std::string encoding = other_encoding(record), unit = config.unit();
  fail(ErrorKind::kData, what, encoding.empty() ? "correct the " + unit : encoding, ", or leave such ", unit,
       "s out with --on-error skip (and --rejects FILE to keep them)");
}

/// The output files of one JSON key.
class DocumentOutput::Key {
 public:
  /// `from`: the key's state in the interrupted run that this run continues; null if there is none.
  Key(const PreprocessConfig& config, const std::string& key, const TextTools& tools, const KeyState* from)
      : key_(key),
        prefix_(config.prefix_of(key)),
        tools_(tools),
        sidecar_{.tokenizer = tools.tokenizer.name(),
                 .tokenizer_hash = tools.tokenizer_hash,
                 .vocab_size = tools.tokenizer.vocab_size(),
                 .options = options_json(config, tools)},
        writer_(make_writer(config, from)),
        max_id_(from ? from->max_id : -1) {
    constexpr size_t kMostDirect = 8;  // datasets that may each have a thread and buffers for direct I/O
    if (config.json_keys.size() > kMostDirect) writer_.write_through_cache();
    if (config.text == TextUnit::kNone) sidecar_.options.set("json_key", key_);
  }

  /// Adds the documents whose entry in `wanted` is 1. If `wanted` is empty, adds all documents.
  void add(const KeyTokens& batch, std::span<const char> wanted) {
    max_id_ = std::max<int64_t>(max_id_, batch.max_id);
    const size_t documents = batch.sequences.size();
    Run run;
    while (run.end < documents) {
      const size_t begin = run.end++;
      while (run.end < documents && (wanted.empty() || wanted[run.end] == wanted[begin])) ++run.end;
      write(batch, run, std::span(batch.sequences).subspan(begin, run.end - begin),
            wanted.empty() || wanted[begin]);
    }
  }

  /// Completes the files; the caller gives them their names with commit(). `shard`: what the sidecar says of
  /// the shard whose dataset this is.
  DatasetPair& complete(const std::optional<ShardRecord>& shard) {
    DatasetPair& pair = writer_.complete();
    sidecar_.max_token_id = max_id_;
    sidecar_.shard = shard;
    writer_.describe(sidecar_);
    pair.add_sidecar(sidecar_);
    return pair;
  }

  KeyState save() { return {.written = writer_.save(), .max_id = max_id_}; }

  const std::string& key() const { return key_; }
  const std::string& prefix() const { return prefix_; }
  IndexedDatasetWriter& writer() { return writer_; }

 private:
  IndexedDatasetWriter make_writer(const PreprocessConfig& config, const KeyState* from) const {
    const IndexedDType dtype = optimal_dtype(tools_.tokenizer.vocab_size());
    if (!config.resume) return IndexedDatasetWriter(prefix_, dtype);
    return IndexedDatasetWriter(prefix_, dtype, from ? from->written : WriterMark{});
  }

  /// A range of consecutive documents of a batch.
  struct Run {
    size_t end = 0;                 // the document after the last
    size_t byte = 0, sequence = 0;  // where its first document begins in the batch's tokens and lengths
  };
  /// Moves `run` past the next documents, and writes them if `wanted`. `sequences` holds the number of
  /// sequences of each of these documents.
  void write(const KeyTokens& batch, Run& run, std::span<const int32_t> sequences, bool wanted) {
    size_t n = 0, bytes = 0;
    for (const int32_t count : sequences) n += static_cast<size_t>(count);
    const std::span lengths =
        std::span(batch.lengths).subspan(std::exchange(run.sequence, run.sequence + n), n);
    for (const int32_t length : lengths) bytes += static_cast<size_t>(length) * batch.tokens.width();
    const size_t begin = run.byte;
    run.byte = std::min(begin + bytes, batch.tokens.bytes());
    if (!wanted) return;
    for (const auto& part : batch.tokens.parts(begin, run.byte)) writer_.add_ids(part);
    if (run.end == batch.sequences.size() && batch.long_tokens)
      batch.long_tokens->read([&](std::span<const std::byte> block) {
        writer_.add_ids({reinterpret_cast<const char*>(block.data()), block.size()});
      });
    writer_.end_documents(lengths, sequences);
  }

  std::string key_, prefix_;
  const TextTools& tools_;
  Sidecar sidecar_;  // complete, except for the counts and hashes, which complete() fills in
  IndexedDatasetWriter writer_;
  int64_t max_id_;
};

DocumentOutput::DocumentOutput(const PreprocessConfig& config, const TextTools& tools, RunInputs inputs)
    : config_(config),
      inputs_(std::move(inputs)),
      total_(total_size(inputs_.files)),
      progress_("preprocess", total_, "B") {
  if (config.resume) {
    make_directories(parent_or_here(config.output_prefix));
    journal_.emplace(config.output_prefix, identity_of(config, inputs_, tools));
  }
  const PreprocessState* const from = journal_ && journal_->state() ? &*journal_->state() : nullptr;
  try {
    open_outputs(tools, from);
  } catch (const Error& error) {
    if (from && error.kind() == ErrorKind::kData)
      fail(ErrorKind::kData, "--resume: ", error.what(), "; remove ", journal_->path(), " to start over");
    throw;
  }
  if (inputs_.shard && !config_.dedup_read.empty())
    read_seen(config_.dedup_read, hashes_of(config_, *inputs_.shard), contents_);
  seen_before_ = contents_.size();
  if (from) resume_from(*from);
  state_.texts.resize(inputs_.files.size());
}

/// Opens the output files. If this run continues an interrupted one, the files must match the state `from`.
void DocumentOutput::open_outputs(const TextTools& tools, const PreprocessState* from) {
  for (const std::string& key : config_.json_keys)
    keys_.push_back(std::make_unique<Key>(config_, key, tools, from ? &state_of(*from, key) : nullptr));
  if (const std::filesystem::path rejects = config_.rejects;
      !rejects.empty() && (!exists(rejects) || is_regular_file(rejects)))
    rejects_lock_.emplace(config_.rejects);
  if (!config_.rejects.empty() && config_.resume) {
    const KeptBytes rejects = from ? from->rejects : KeptBytes{};
    rejects_.emplace(config_.rejects, rejects.bytes);
    rejects_hash_ = hash_kept(*rejects_, rejects);
  } else if (!config_.rejects.empty()) {
    rejects_.emplace(config_.rejects, OutputKind::kStream);
  }
  if (config_.dedup == Dedup::kExact && config_.resume)
    saved_hashes_.emplace(
        hashes_path(config_),
        from ? KeptBytes{from->hashes * sizeof(ContentHash), from->hashes_hash} : KeptBytes{});
}

DocumentOutput::~DocumentOutput() = default;

void DocumentOutput::resume_from(const PreprocessState& from) {
  state_ = from;
  if (saved_hashes_)
    saved_hashes_->read([&](std::span<const std::byte> block) {
      for (size_t at = 0; at < block.size(); at += sizeof(ContentHash)) {
        ContentHash hash;
        std::memcpy(&hash, block.data() + at, sizeof hash);
        contents_.insert(hash);
      }
    });
  documents_before_ = state_.summary.documents;
  bytes_before_ = state_.summary.bytes;
  tokens_before_ = tokens();
  log("Resuming after ", format_count(state_.summary.lines), " ", config_.unit(), "s, in ",
      shown_input(inputs_.files[state_.source.input].path), ":", state_.source.reader.place.line);
}

/// Saves everything that the state refers to, and then the state itself: a run that resumes relies on the
/// state.
void DocumentOutput::save() {
  if (!journal_ || taking_) return;
  state_.keys.clear();
  for (const auto& key : keys_) state_.keys.emplace_back(key->key(), key->save());
  if (rejects_) rejects_->sync();
  state_.rejects = {rejects_ ? rejects_->size() : 0, rejects_hash_.digest()};
  state_.hashes = contents_.size() - seen_before_;
  state_.hashes_hash = saved_hashes_ ? saved_hashes_->save().hash : 0;
  journal_->write(state_);
  saved_ = std::chrono::steady_clock::now();
}

void DocumentOutput::save_if_due() {
  if (!journal_) return;
  if (seconds_since(saved_) >= config_.save_interval) save();
}

void DocumentOutput::take(DocumentBatch& batch) {
  taking_ = true;
  state_.source = batch.end;
  decoder_memory_ = std::max(decoder_memory_, batch.decoder_memory);
  state_.summary.bytes += batch.bytes;
  state_.summary.longest_line = std::max<uint64_t>(state_.summary.longest_line, batch.longest_line);
  for (const BadLine& bad : batch.bad) take_bad_line(batch, bad);
  state_.texts[state_.source.input] +=
      static_cast<int64_t>(batch.keys[0].sequences.size() + batch.short_documents);
  add_documents(batch);
  state_.summary.lines += static_cast<int64_t>(batch.lines.lines());
  state_.summary.blank_lines += static_cast<int64_t>(batch.blank_lines);
  state_.summary.short_documents += static_cast<int64_t>(batch.short_documents);
  taking_ = false;
  show_progress(batch.consumed);
  save_if_due();
  for (KeyTokens& key : batch.keys) key.tokens.clear();  // the next batch reuses their memory
  if (batch.lines.capacity() > kKeptBatch) batch = DocumentBatch{};
}

void DocumentOutput::add_documents(const DocumentBatch& batch) {
  const size_t documents = batch.keys[0].sequences.size();
  const std::vector<char> wanted = find_new(batch.hashes);
  for (size_t k = 0; k < keys_.size(); ++k) keys_[k]->add(batch.keys[k], wanted);
  const auto left_out = static_cast<int64_t>(std::count(wanted.begin(), wanted.end(), 0));
  state_.summary.duplicates += left_out;
  count_documents(static_cast<int64_t>(documents) - left_out);
}

/// Returns for each document whether it is the first one with its texts. Returns an empty vector if all are,
/// or if duplicates are not looked for.
std::vector<char> DocumentOutput::find_new(std::span<const ContentHash> hashes) {
  std::vector<char> wanted;
  wanted.reserve(hashes.size());
  for (const ContentHash& hash : hashes) wanted.push_back(remember(hash) ? 1 : 0);
  if (std::count(wanted.begin(), wanted.end(), 0) == 0) wanted.clear();
  return wanted;
}

bool DocumentOutput::remember(const ContentHash& hash) {
  if (!contents_.insert(hash)) return false;
  if (saved_hashes_) saved_hashes_->append(&hash, sizeof hash);
  return true;
}

PreprocessSummary DocumentOutput::finish() {
  log("Done! Now finalizing.");
  if (state_.summary.lines > 0) save();  // otherwise there is no work that another run could spare itself
  for (const auto& key : keys_) key->writer().begin_finish();
  std::vector<DatasetPair*> pairs;
  for (const auto& key : keys_) pairs.push_back(&key->complete(shard_record()));
  if (rejects_) rejects_->commit();
  commit(pairs);
  if (journal_) {
    journal_->remove();
    for (const auto& key : keys_) key->writer().remove_partial_files();
    if (saved_hashes_) std::filesystem::remove(hashes_path(config_));
  }
  if (state_.summary.skipped() > 0) log_skipped();
  log_summary();
  log_memory();
  return state_.summary;
}

/// What the sidecars say of the shard, once all of its lines are written.
std::optional<ShardRecord> DocumentOutput::shard_record() const {
  std::optional<ShardRecord> record = inputs_.shard;
  if (record && rejects_)
    record->rejects = {state_.summary.skipped(), {rejects_->size(), hex64(rejects_hash_.digest())}};
  return record;
}

void DocumentOutput::count_documents(int64_t more) {
  const int64_t interval = config_.log_interval;
  for (int64_t next = state_.summary.documents / interval * interval + interval;
       next <= state_.summary.documents + more; next += interval)
    log_rate(next);
  state_.summary.documents += more;
}

void DocumentOutput::take_bad_line(const DocumentBatch& batch, const BadLine& bad) {
  const InputFile& file = inputs_.files[state_.source.input];
  if (config_.on_error == OnError::kStrict) fail_at(config_, file, batch, bad);
  const std::string place = shown_place(file, batch.lines.place(bad.line, bad.byte));
  SkippedLines& skipped = state_.summary.faults[static_cast<size_t>(bad.fault)];
  if (skipped.count++ < static_cast<int64_t>(kLinesNamed)) skipped.places.push_back(place);
  if (rejects_) reject(batch, bad);
}

/// Writes the original bytes of a bad line to the rejects. If the "line" is an element of a JSON array, its
/// line ends, which are white space in JSON, are replaced by blanks, so that it becomes one line. A blank
/// line follows a paragraph.
void DocumentOutput::reject(const DocumentBatch& batch, const BadLine& bad) {
  char last = '\0';
  const auto write = [&](std::string_view part) {
    rejects_->write(part);
    rejects_hash_.update(part.data(), part.size());
  };
  const auto keep = [&](std::string_view part) {
    std::string line;
    if (batch.lines.from_array()) {
      line = part;
      std::replace_if(
          line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
      part = line;
    }
    write(part);
    if (!part.empty()) last = part.back();
  };
  const bool is_long = bad.line + 1 == batch.lines.lines() && batch.long_line != nullptr;
  if (is_long && bad.fault == DocumentFault::kRefused)
    batch.long_line->read([&](std::span<const std::byte> block) {
      keep({reinterpret_cast<const char*>(block.data()), block.size()});
    });
  else
    keep(bad.raw.empty() ? batch.lines.raw_line(bad.line) : bad.raw);
  if (last != '\n' && last != '\r') write("\n");
  if (config_.text == TextUnit::kParagraph) write("\n");
}

double DocumentOutput::seconds() const {
  return seconds_since(start_);
}

int64_t DocumentOutput::tokens() const {
  int64_t total = 0;
  for (const auto& key : keys_) total += key->writer().tokens();
  return total;
}

void DocumentOutput::show_progress(uint64_t consumed) {
  constexpr double kBetween = 0.1;  // a corpus may have a file for each text
  const double elapsed = std::max(seconds(), 1e-9);
  if (elapsed < shown_ + kBetween && static_cast<int64_t>(consumed) != total_) return;
  shown_ = elapsed;
  const auto rate = [&](int64_t count) {
    return format_count(static_cast<int64_t>(static_cast<double>(count) / elapsed));
  };
  progress_.advance_to(static_cast<int64_t>(consumed),
                       concat(format_count(state_.summary.documents), " documents  ",
                              rate(state_.summary.documents - documents_before_), " docs/s  ",
                              rate(tokens() - tokens_before_), " tokens/s"));
}

void DocumentOutput::log_rate(int64_t documents) const {
  const double elapsed = seconds();
  log("Processed ", documents, " documents (",
      format_double(static_cast<double>(documents - documents_before_) / elapsed), " docs/s, ",
      format_double(static_cast<double>(state_.summary.bytes - bytes_before_) / elapsed / 1024 / 1024),
      " MB/s).");
}

void DocumentOutput::log_summary() const {
  for (const auto& key : keys_)
    log(printable(key->prefix()), ": ", format_count(key->writer().documents()), " documents, ",
        format_count(key->writer().sequences()), " sequences, ", format_count(key->writer().tokens()),
        " tokens");
  if (state_.summary.blank_lines > 0)
    log("Blank ", config_.unit(), "s skipped: ", format_count(state_.summary.blank_lines));
  if (config_.min_chars > 0)
    log("Left out with fewer than ", format_count(config_.min_chars),
        " characters: ", format_count(state_.summary.short_documents), " documents");
  if (config_.dedup == Dedup::kExact)
    log("Left out as exact duplicates: ", format_count(state_.summary.duplicates), " documents; ",
        format_bytes(static_cast<double>(contents_.bytes())), " for ",
        format_count(static_cast<int64_t>(contents_.size())), " hashes");
  if (state_.summary.documents == 0 && !inputs_.shard)
    warn("the input holds no document; the dataset is empty");
  std::vector<std::string> without;
  for (size_t i = 0; i < inputs_.files.size(); ++i)
    if (state_.texts[i] == 0 && inputs_.files[i].size > 0 && !inputs_.shard)
      without.push_back(inputs_.files[i].path);
  const size_t count = without.size();
  without.resize(std::min(count, kLinesNamed));
  if (count > 0)
    warn(count, " of ", inputs_.files.size(),
         " inputs are not empty and hold no document: ", join(without, ", "),
         count > kLinesNamed ? ", …" : "");
  const double elapsed = std::max(seconds(), 1e-9);
  log("Speed: ", format_fixed(elapsed, 2), " s, ",
      format_fixed(static_cast<double>(state_.summary.bytes - bytes_before_) / elapsed / 1e6, 1), " MB/s, ",
      format_count(static_cast<int64_t>(static_cast<double>(tokens() - tokens_before_) / elapsed)),
      " tokens/s");
}

void DocumentOutput::log_skipped() const {
  warn(format_count(state_.summary.skipped()), " of ", format_count(state_.summary.lines), " ",
       config_.unit(), "s skipped", rejects_ ? ", kept in " + rejects_->path() : "");
  for (size_t reason = 0; reason < kDocumentFaults; ++reason) {
    const auto& [count, places] = state_.summary.faults[reason];
    if (count == 0) continue;
    log("  ", format_count(count), " ", name(static_cast<DocumentFault>(reason)), ": ", join(places, ", "),
        count > static_cast<int64_t>(kLinesNamed) ? ", …" : "");
  }
}

void DocumentOutput::log_memory() const {
  const uint64_t hashes = contents_.size() * ContentSet::kBytesEach;
  const double limit = promised_mebibytes(config_) * 1024.0 * 1024.0 +
                       static_cast<double>(2 * state_.summary.longest_line + decoder_memory_ + hashes);
  log("Memory: ", format_bytes(static_cast<double>(peak_memory())), " at most; limit ", format_bytes(limit),
      " (", promised_mebibytes(config_), " MiB, twice the longest ", config_.unit(),
      decoder_memory_ > 0 ? ", the decompressor" : "", hashes > 0 ? ", the hashes" : "", ")");
}

}  // namespace megalith
