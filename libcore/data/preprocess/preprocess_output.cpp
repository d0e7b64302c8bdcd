#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/data/indexed/dataset_pair.h"
#include "libcore/data/indexed/sidecar.h"
#include "libcore/data/preprocess/preprocess_stages.h"

namespace megalith {
namespace {

constexpr size_t kLinesNamed = 5;  // per reason, in the summary

/// Beside what the inputs need; see preprocess().
int promised_mebibytes(const PreprocessConfig& config) {
  constexpr int kEachWorker = 8, kEachKey = 4;
  return 128 + kEachWorker * std::max(0, config.workers - 2) +
         kEachKey * static_cast<int>(config.json_keys.size() - 1);
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

/// What decides the output's bytes, without the inputs.
Json options_json(const PreprocessConfig& config, const TextTools& tools) {
  Json options = Json::object();
  options.set("append_eod", config.append_eod);
  options.set("on_error", enum_name(config.on_error));
  options.set("max_document_bytes", config.max_document_bytes);
  options.set("min_chars", config.min_chars);
  options.set("dedup", enum_name(config.dedup));
  options.set("split_sentences", config.split_sentences);
  if (tools.splitter) {
    options.set("lang", config.language);
    options.set("punkt_hash", tools.splitter->parameters().hash);
    options.set("keep_newlines", config.keep_newlines);
  }
  return options;
}

/// What must be the same for a run to go on where another one stopped.
Json identity_of(const PreprocessConfig& config, const std::vector<InputFile>& files,
                 const TextTools& tools) {
  Json run = Json::object();
  run.set("version", 2);
  Json inputs = Json::array();
  for (const InputFile& file : files) {
    if (file.pipe)
      fail(ErrorKind::kUsage, "--resume: ", quote(shown_input(file.path)),
           " cannot be read a second time; wanted files");
    Json input = Json::object();
    input.set("path", file.path);
    input.set("bytes", file.size);
    input.set("modified_ns", file.modified);
    inputs.push_back(std::move(input));
  }
  run.set("inputs", std::move(inputs));
  Json keys = Json::array();
  for (const std::string& key : config.json_keys) keys.push_back(key);
  run.set("json_keys", std::move(keys));
  run.set("tokenizer", tools.tokenizer.name() + " " + tools.tokenizer_hash);
  run.set("rejects", config.rejects);
  const Json options = options_json(config, tools);
  for (const auto& [name, value] : options.as_object()) run.set(name, value);
  return run;
}

std::string hashes_path(const PreprocessConfig& config) {
  return AtomicFile::partial_name(config.output_prefix + ".hashes");
}

uint64_t saved_hash(const Json& hex) {
  return std::strtoull(hex.as_string().c_str(), nullptr, 16);
}

}  // namespace

/// One key's output.
class DocumentOutput::Key {
 public:
  /// `from`: of a run that can be interrupted, what an earlier one has done.
  Key(const PreprocessConfig& config, const std::string& key, const TextTools& tools, const Json* from)
      : key_(key),
        prefix_(config.prefix_of(key)),
        tools_(tools),
        sidecar_{.tokenizer = tools.tokenizer.name(),
                 .tokenizer_hash = tools.tokenizer_hash,
                 .vocab_size = tools.tokenizer.vocab_size(),
                 .options = options_json(config, tools)},
        writer_(make_writer(config, from)),
        max_id_(from ? static_cast<int32_t>((*from)["max_id"].as_int()) : -1) {
    sidecar_.options.set("json_key", key_);
  }

  /// The documents for which `wanted` holds a 1; all when it is empty.
  void add(const KeyTokens& batch, std::span<const char> wanted) {
    max_id_ = std::max(max_id_, batch.max_id);
    const size_t documents = batch.sequences.size();
    Run run;
    while (run.end < documents) {
      const size_t begin = run.end++;
      while (run.end < documents && (wanted.empty() || wanted[run.end] == wanted[begin])) ++run.end;
      write(batch, run, std::span(batch.sequences).subspan(begin, run.end - begin),
            wanted.empty() || wanted[begin]);
    }
  }

  /// Everything but the files' names.
  DatasetPair& complete() {
    DatasetPair& pair = writer_.complete();
    sidecar_.max_token_id = max_id_;
    writer_.describe(sidecar_);
    pair.add_sidecar(sidecar_);
    return pair;
  }

  Json save() {
    const WriterMark mark = writer_.save();
    Json json = Json::object();
    json.set("documents", mark.documents);
    json.set("sequences", mark.sequences);
    json.set("tokens", mark.tokens);
    json.set("max_id", max_id_);
    json.set("bin_xxh64", hex64(mark.bin_hash));
    json.set("lengths_xxh64", hex64(mark.lengths_hash));
    json.set("documents_xxh64", hex64(mark.documents_hash));
    return json;
  }

  const std::string& key() const { return key_; }
  const std::string& prefix() const { return prefix_; }
  IndexedDatasetWriter& writer() { return writer_; }

 private:
  IndexedDatasetWriter make_writer(const PreprocessConfig& config, const Json* from) const {
    const IndexedDType dtype = optimal_dtype(tools_.tokenizer.vocab_size());
    if (!config.resume) return IndexedDatasetWriter(prefix_, dtype);
    WriterMark mark;
    if (from)
      mark = {.sequences = (*from)["sequences"].as_int(),
              .documents = (*from)["documents"].as_int(),
              .tokens = (*from)["tokens"].as_int(),
              .bin_hash = saved_hash((*from)["bin_xxh64"]),
              .lengths_hash = saved_hash((*from)["lengths_xxh64"]),
              .documents_hash = saved_hash((*from)["documents_xxh64"])};
    return IndexedDatasetWriter(prefix_, dtype, mark);
  }

  /// Documents of a batch that follow each other.
  struct Run {
    size_t end = 0;                 // the document after the last
    size_t byte = 0, sequence = 0;  // of the batch, where the first begins
  };
  /// Moves `run` over the documents of these numbers of sequences, and writes them unless they are not
  /// wanted.
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
  Sidecar sidecar_;  // without what is known at the end
  IndexedDatasetWriter writer_;
  int32_t max_id_;
};

DocumentOutput::DocumentOutput(const PreprocessConfig& config, const TextTools& tools,
                               std::vector<InputFile> files)
    : config_(config),
      files_(std::move(files)),
      texts_(files_.size()),
      progress_("preprocess", total_size(files_), "B") {
  if (config.resume) {
    make_directories(parent_or_here(config.output_prefix));
    journal_.emplace(config.output_prefix, identity_of(config, files_, tools));
  }
  const Json* const state = journal_ && journal_->state() ? &*journal_->state() : nullptr;
  try {
    open_outputs(tools, state);
  } catch (const Error& error) {
    if (state && error.kind() == ErrorKind::kData)
      fail(ErrorKind::kData, "--resume: ", error.what(), "; remove ", journal_->path(), " to begin anew");
    throw;
  }
  if (state) go_on_from(*state);
}

/// Those of an interrupted run must hold what its state says that they hold.
void DocumentOutput::open_outputs(const TextTools& tools, const Json* state) {
  for (const std::string& key : config_.json_keys)
    keys_.push_back(std::make_unique<Key>(config_, key, tools, state ? &(*state)["keys"][key] : nullptr));
  const auto kept = [&](const char* count, uint64_t bytes_each, const char* hash) {
    return state ? KeptBytes{static_cast<uint64_t>((*state)[count].as_int()) * bytes_each,
                             saved_hash((*state)[hash])}
                 : KeptBytes{};
  };
  if (const std::filesystem::path rejects = config_.rejects;
      !rejects.empty() && (!exists(rejects) || is_regular_file(rejects)))
    rejects_lock_.emplace(config_.rejects);
  if (!config_.rejects.empty() && config_.resume) {
    const KeptBytes rejects = kept("rejects_bytes", 1, "rejects_xxh64");
    rejects_.emplace(config_.rejects, rejects.bytes);
    rejects_hash_ = hash_kept(*rejects_, rejects);
  } else if (!config_.rejects.empty()) {
    rejects_.emplace(config_.rejects, OutputKind::kStream);
  }
  if (config_.dedup == Dedup::kExact && config_.resume)
    saved_hashes_.emplace(hashes_path(config_), kept("hashes", sizeof(ContentHash), "hashes_xxh64"));
}

DocumentOutput::~DocumentOutput() = default;

void DocumentOutput::go_on_from(const Json& state) {
  const auto number = [&](const char* name) { return state[name].as_int(); };
  const auto place = [&](const char* name) { return static_cast<uint64_t>(number(name)); };
  mark_ = {.input = static_cast<size_t>(number("input")),
           .reader = {.bytes = place("input_bytes"),
                      .place = {.line = place("line"),
                                .byte = place("byte"),
                                .after_return = state["after_return"].as_bool()},
                      .mode = static_cast<ReaderMark::Mode>(number("mode"))},
           .finished = place("finished")};
  summary_ = {.lines = number("lines"),
              .documents = number("documents"),
              .blank_lines = number("blank_lines"),
              .short_documents = number("short_documents"),
              .duplicates = number("duplicates"),
              .bytes = place("bytes"),
              .longest_line = place("longest_line")};
  const Json::Array& texts = state["texts"].as_array();
  for (size_t i = 0; i < std::min(texts_.size(), texts.size()); ++i) texts_[i] = texts[i].as_int();
  const Json::Array& faults = state["faults"].as_array();
  for (size_t reason = 0; reason < std::min(kDocumentFaults, faults.size()); ++reason) {
    summary_.faults[reason] = faults[reason]["count"].as_int();
    for (const Json& shown : faults[reason]["places"].as_array())
      places_[reason].push_back(shown.as_string());
  }
  if (saved_hashes_)
    saved_hashes_->read([&](std::span<const std::byte> block) {
      for (size_t at = 0; at < block.size(); at += sizeof(ContentHash)) {
        ContentHash hash;
        std::memcpy(&hash, block.data() + at, sizeof hash);
        contents_.insert(hash);
      }
    });
  documents_before_ = summary_.documents;
  bytes_before_ = summary_.bytes;
  tokens_before_ = tokens();
  log("Going on after ", format_count(summary_.lines), " lines, in ", shown_input(files_[mark_.input].path),
      ":", mark_.reader.place.line);
}

Json DocumentOutput::state() const {
  Json state = Json::object();
  state.set("input", static_cast<uint64_t>(mark_.input));
  state.set("input_bytes", mark_.reader.bytes);
  state.set("line", mark_.reader.place.line);
  state.set("byte", mark_.reader.place.byte);
  state.set("after_return", mark_.reader.place.after_return);
  state.set("mode", static_cast<int64_t>(mark_.reader.mode));
  state.set("finished", mark_.finished);
  state.set("lines", summary_.lines);
  state.set("documents", summary_.documents);
  state.set("blank_lines", summary_.blank_lines);
  state.set("short_documents", summary_.short_documents);
  state.set("duplicates", summary_.duplicates);
  state.set("bytes", summary_.bytes);
  state.set("longest_line", summary_.longest_line);
  Json faults = Json::array();
  for (size_t reason = 0; reason < kDocumentFaults; ++reason) {
    Json fault = Json::object();
    fault.set("count", summary_.faults[reason]);
    Json places = Json::array();
    for (const std::string& place : places_[reason]) places.push_back(place);
    fault.set("places", std::move(places));
    faults.push_back(std::move(fault));
  }
  state.set("faults", std::move(faults));
  Json texts = Json::array();
  for (const int64_t count : texts_) texts.push_back(count);
  state.set("texts", std::move(texts));
  state.set("rejects_bytes", rejects_ ? rejects_->size() : 0);
  state.set("rejects_xxh64", hex64(rejects_hash_.digest()));
  state.set("hashes", contents_.size());
  return state;
}

/// First everything that the state speaks of, then the state, because a run that goes on trusts what it says.
void DocumentOutput::save() {
  if (!journal_ || taking_) return;
  Json now = state();
  Json keys = Json::object();
  for (const auto& key : keys_) keys.set(key->key(), key->save());
  now.set("keys", std::move(keys));
  if (rejects_) rejects_->sync();
  now.set("hashes_xxh64", hex64(saved_hashes_ ? saved_hashes_->save().hash : 0));
  journal_->write(std::move(now));
  saved_ = std::chrono::steady_clock::now();
}

void DocumentOutput::save_if_due() {
  if (!journal_) return;
  if (seconds_since(saved_) >= config_.save_interval) save();
}

void DocumentOutput::take(DocumentBatch& batch) {
  taking_ = true;
  mark_ = batch.end;
  decoder_memory_ = std::max(decoder_memory_, batch.decoder_memory);
  summary_.bytes += batch.bytes;
  summary_.longest_line = std::max<uint64_t>(summary_.longest_line, batch.longest_line);
  for (const BadLine& bad : batch.bad) take_bad_line(batch, bad);
  texts_[mark_.input] += static_cast<int64_t>(batch.keys[0].sequences.size() + batch.short_documents);
  add_documents(batch);
  summary_.lines += static_cast<int64_t>(batch.lines.lines());
  summary_.blank_lines += static_cast<int64_t>(batch.blank_lines);
  summary_.short_documents += static_cast<int64_t>(batch.short_documents);
  taking_ = false;
  show_progress(batch.consumed);
  save_if_due();
  for (KeyTokens& key : batch.keys) key.tokens.clear();  // their memory is the next one's
  if (batch.lines.capacity() > kKeptBatch) batch = DocumentBatch{};
}

void DocumentOutput::add_documents(const DocumentBatch& batch) {
  const size_t documents = batch.keys[0].sequences.size();
  const std::vector<char> wanted = find_new(batch.hashes);
  for (size_t k = 0; k < keys_.size(); ++k) keys_[k]->add(batch.keys[k], wanted);
  const auto left_out = static_cast<int64_t>(std::count(wanted.begin(), wanted.end(), 0));
  summary_.duplicates += left_out;
  count_documents(static_cast<int64_t>(documents) - left_out);
}

/// For each document whether it is the first with its texts; empty when all are, or nobody asked.
std::vector<char> DocumentOutput::find_new(std::span<const ContentHash> hashes) {
  std::vector<char> wanted;
  wanted.reserve(hashes.size());
  for (const ContentHash& hash : hashes) wanted.push_back(remember(hash));
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
  save();
  for (const auto& key : keys_) key->writer().begin_finish();
  std::vector<DatasetPair*> pairs;
  for (const auto& key : keys_) pairs.push_back(&key->complete());
  if (rejects_) rejects_->commit();
  commit(pairs);
  if (journal_) {
    journal_->remove();
    for (const auto& key : keys_) key->writer().remove_partial_files();
    if (saved_hashes_) std::filesystem::remove(hashes_path(config_));
  }
  if (summary_.skipped() > 0) log_skipped();
  log_summary();
  log_memory();
  return summary_;
}

void DocumentOutput::count_documents(int64_t more) {
  const int64_t interval = config_.log_interval;
  for (int64_t next = summary_.documents / interval * interval + interval; next <= summary_.documents + more;
       next += interval)
    log_rate(next);
  summary_.documents += more;
}

void DocumentOutput::take_bad_line(const DocumentBatch& batch, const BadLine& bad) {
  const TextPlace at = batch.lines.place(bad.line, bad.byte);
  const std::string place = concat(shown_input(files_[mark_.input].path), ":", at.line, ":", at.byte);
  if (config_.on_error == OnError::kStrict)
    fail(ErrorKind::kData, place, ": ", name(bad.fault), ": ", bad.detail,
         "; correct the line, or leave such lines out with --on-error skip (and --rejects FILE to keep "
         "them)");
  const auto reason = static_cast<size_t>(bad.fault);
  if (summary_.faults[reason]++ < static_cast<int64_t>(kLinesNamed)) places_[reason].push_back(place);
  if (rejects_) reject(batch, bad);
}

/// The line's own bytes. An array's element becomes one line: its line ends, which are blanks in JSON, become
/// blanks.
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
  if (!progress_visible()) return;
  const double elapsed = std::max(seconds(), 1e-9);
  const auto rate = [&](int64_t count) {
    return format_count(static_cast<int64_t>(static_cast<double>(count) / elapsed));
  };
  progress_.advance_to(
      static_cast<int64_t>(consumed),
      concat(format_count(summary_.documents), " documents  ", rate(summary_.documents - documents_before_),
             " docs/s  ", rate(tokens() - tokens_before_), " tokens/s"));
}

void DocumentOutput::log_rate(int64_t documents) const {
  const double elapsed = seconds();
  log("Processed ", documents, " documents (",
      format_double(static_cast<double>(documents - documents_before_) / elapsed), " docs/s, ",
      format_double(static_cast<double>(summary_.bytes - bytes_before_) / elapsed / 1024 / 1024), " MB/s).");
}

void DocumentOutput::log_summary() const {
  for (const auto& key : keys_)
    log(key->prefix(), ": ", format_count(key->writer().documents()), " documents, ",
        format_count(key->writer().sequences()), " sequences, ", format_count(key->writer().tokens()),
        " tokens");
  if (summary_.blank_lines > 0) log("Blank lines skipped: ", format_count(summary_.blank_lines));
  if (config_.min_chars > 0)
    log("Left out with fewer than ", format_count(config_.min_chars),
        " characters: ", format_count(summary_.short_documents), " documents");
  if (config_.dedup == Dedup::kExact)
    log("Left out as exact duplicates: ", format_count(summary_.duplicates), " documents; ",
        format_bytes(static_cast<double>(contents_.bytes())), " for ",
        format_count(static_cast<int64_t>(contents_.size())), " hashes");
  if (summary_.documents == 0) warn("the input holds no document; the dataset is empty");
  std::vector<std::string> without;
  for (size_t i = 0; i < files_.size(); ++i)
    if (texts_[i] == 0 && files_[i].size > 0) without.push_back(files_[i].path);
  const size_t count = without.size();
  without.resize(std::min(count, kLinesNamed));
  if (count > 0)
    warn(count, " of ", files_.size(), " inputs are not empty and hold no document: ", join(without, ", "),
         count > kLinesNamed ? ", …" : "");
  const double elapsed = std::max(seconds(), 1e-9);
  log("Speed: ", format_fixed(elapsed, 2), " s, ",
      format_fixed(static_cast<double>(summary_.bytes - bytes_before_) / elapsed / 1e6, 1), " MB/s, ",
      format_count(static_cast<int64_t>(static_cast<double>(tokens() - tokens_before_) / elapsed)),
      " tokens/s");
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
  const uint64_t hashes = contents_.size() * ContentSet::kBytesEach;
  const double limit = promised_mebibytes(config_) * 1024.0 * 1024.0 +
                       static_cast<double>(2 * summary_.longest_line + decoder_memory_ + hashes);
  log("Memory: ", format_bytes(static_cast<double>(peak_memory())), " at most; limit ", format_bytes(limit),
      " (", promised_mebibytes(config_), " MiB, twice the longest line",
      decoder_memory_ > 0 ? ", the decompressor" : "", hashes > 0 ? ", the hashes" : "", ")");
}

}  // namespace megalith
