#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/config/tokenizer_config.h"
#include "libcore/data/preprocess/corpus_files.h"
#include "libcore/io/run/run_files.h"
#include "libcore/json/document_json.h"
#include "libcore/options/fields.h"
#include "libcore/text/tokenizer.h"

namespace megalith {

enum class OnError { kStrict, kSkip };
inline std::vector<EnumName<OnError>> enum_names(OnError) {
  return {{"strict", OnError::kStrict}, {"skip", OnError::kSkip}};
}

enum class Dedup { kNone, kExact };
inline std::vector<EnumName<Dedup>> enum_names(Dedup) {
  return {{"none", Dedup::kNone}, {"exact", Dedup::kExact}};
}

/// Options of preprocess(), which turns loose JSON or plain text into indexed datasets. Names and defaults
/// are those of Megatron's tools/preprocess_data.py, in the versions that the documented commands use.
struct PreprocessConfig {
  std::vector<std::string> inputs, json_keys = {"text"};
  std::string input_command;  // empty: inputs are files
  std::string output_prefix;
  TextUnit text = TextUnit::kNone;
  bool append_eod = false;
  OnError on_error = OnError::kStrict;
  std::string rejects;
  int64_t max_document_bytes = 0;  // 0: any length
  int64_t min_chars = 0;
  Dedup dedup = Dedup::kNone;
  bool resume = false;
  std::string shard;              // empty: all of the work
  std::optional<int64_t> shards;  // with --shard auto
  ShardBy shard_by = ShardBy::kBytes;
  std::string dedup_write, dedup_read;
  std::string dataset_impl = "mmap";
  int workers = 0;     // 0: finish() sets the number of cores that the process may use
  int chunk_size = 0;  // lines of a batch; 0: at most 4,096
  int64_t log_interval = 1000;
  int vocab_size = 0;
  int vocab_divisor = 128;
  bool split_sentences = false;
  std::string language = "english";
  bool keep_newlines = false;
  double save_interval = 5;  // not an option: with --resume, seconds between two saves of the state

  template <class V>
  void fields(V&& v) {
    v("input", inputs,
      "Files of one JSON object a line, or of one array of objects; plain or compressed by gzip, zstd, bzip2 "
      "or xz; or Parquet. A folder stands for the .json, .jsonl and .parquet files below it (with --text: "
      "the .txt files), a quoted pattern for the files that match; - is stdin.",
      required(), metavar("FILE"));
    v("input-command", input_command,
      "Read objects instead of files: each --input is a list of their names, one a line. For each name this "
      "shell command, with the quoted name in place of {}, writes the object to its stdout: 'aws s3 "
      "cp {} -'. With --shard, objects are not cut. If the command fails, the exit code is 75.",
      metavar("COMMAND"));
    v("output-prefix", output_prefix,
      "Path of the datasets: PREFIX_KEY_document.bin and .idx (PREFIX_KEY_sentence with --split-sentences). "
      "With --shard I/N, - is a tar archive of the shard's files on stdout.",
      required(), metavar("PREFIX"));
    v("text", text, kTextHelp);
    v("json-keys", json_keys,
      "Keys (of Parquet: columns) to take; each yields its own dataset. If a line has no key \"meta.text\", "
      "that means key \"text\" of the object \"meta\".",
      metavar("KEY"));
    v("split-sentences", split_sentences,
      "Make each sentence a sequence, as split by NLTK's Punkt with its model for --lang (punkt_tab, from "
      "where NLTK looks for it). Lists of texts are taken to be sentences.");
    v("lang", language, "Language of --split-sentences: a folder of punkt_tab.", metavar("LANGUAGE"));
    v("keep-newlines", keep_newlines,
      "With --split-sentences: leave the blanks and line ends that follow a sentence in it.");
    v("append-eod", append_eod, "End every document that is not empty with the end-of-document token.");
    v("on-error", on_error, "At a bad line: strict stops without output, skip continues without the line.");
    v("rejects", rejects, "Write the skipped lines there, unchanged.", metavar("FILE"));
    v("max-document-bytes", max_document_bytes,
      "A longer line is a bad line, of which little more than this is read into memory (and kept by "
      "--rejects).",
      at_least(0), default_text("any length"));
    v("min-chars", min_chars, "Leave out documents whose texts have fewer characters together.", at_least(0));
    v("dedup", dedup,
      "exact: leave out a document whose texts equal those of an earlier one (16 to 24 bytes of memory "
      "each).");
    v("resume", resume,
      "Keep the state next to the output, so that the same command resumes where it was interrupted.");
    v("shard", shard,
      "Do this part of the work: shard I of N, from 0; I-J/N: several. Its outputs are "
      "PREFIX-00003-of-00020_KEY_document.bin and so on, which megalith-merge --shards joins. It resumes "
      "where it was interrupted (exit code 75), on any machine, and what is complete is not done again. "
      "auto: I is the number that the engine gives this process (MEGALITH_SHARD, SLURM_ARRAY_TASK_ID, "
      "SLURM_PROCID of a step, JOB_COMPLETION_INDEX).",
      metavar("I/N"));
    v("shards", shards, "The number of shards, for --shard auto.", between(1, kMaxShards),
      default_text("N of --shard"));
    v("shard-by", shard_by, kShardByHelp);
    v("dedup-write", dedup_write,
      "Write the hashes of the shard's documents to this folder, and no dataset: the first of three steps "
      "that leave out exact duplicates of all shards. The second is megalith-data dedup DIR.",
      metavar("DIR"));
    v("dedup-read", dedup_read,
      "The third step: leave out a document whose texts equal those of an earlier one, in this shard or "
      "another. Together the shards hold what one process with --dedup exact writes.",
      metavar("DIR"));
    v("workers", workers, "Threads that parse and tokenize; the output does not depend on it.", at_least(0),
      default_text("all cores that the process may use"));
    v("chunk-size", chunk_size, "Maximum number of lines that a worker takes at a time.", at_least(0),
      default_text("by bytes"));
    v("log-interval", log_interval, "Documents between two log lines.", at_least(1));
    v("dataset-impl", dataset_impl, "Accepted for old scripts: the mmap layout is always written.",
      one_of({"mmap", "lazy", "cached"}));
    v("vocab-size", vocab_size, "Ids of a NullTokenizer.", at_least(0), default_text("from the tokenizer"));
    v("make-vocab-size-divisible-by", vocab_divisor, "For the padded size in the log.", at_least(1));
  }
  void finish();
  void validate(Problems&) const;
  /// The prefix of the dataset of `key`: its path without .bin and .idx.
  std::string prefix_of(const std::string& key) const;
  /// What the input consists of, for messages: "line", or "text" with --text.
  const char* unit() const { return text == TextUnit::kNone ? "line" : "text"; }
  /// The shards that --shard names. kUsage if it is auto and no engine gives a number below --shards.
  ShardRange named_shards() const;
};

/// The lines that were skipped for one reason.
struct SkippedLines {
  int64_t count = 0;
  std::vector<std::string> places;  // where the first of them are: "FILE:LINE:BYTE"

  template <class V>
  void fields(V&& v) {
    v("count", count);
    v("places", places);
  }
};

/// What a run did, summed over all inputs.
struct PreprocessSummary {
  int64_t lines = 0, documents = 0, blank_lines = 0;
  int64_t short_documents = 0, duplicates = 0;         // documents left out at the user's request
  std::array<SkippedLines, kDocumentFaults> faults{};  // skipped lines, by DocumentFault
  uint64_t bytes = 0;                                  // bytes of input after decompression
  uint64_t longest_line = 0;                           // bytes
  int64_t skipped() const;
};

/// Turns each line of the inputs into one document per key and writes PREFIX_KEY_document.{bin,idx}
/// (docs/formats/indexed.md) with a sidecar. Documents are in the inputs' order, whatever config.workers is.
/// The value of the key is a string or a list of strings; each string that is not empty becomes one sequence
/// of the document (Megatron's Encoder). With config.text, each text of the inputs (io/streams/text_reader.h)
/// is a document, as if it were the value of key "text", and "line" below means such a text. With
/// config.split_sentences, each sentence of a string becomes a sequence, and the files are
/// PREFIX_KEY_sentence.{bin,idx}; kNoInput if there is no model for the language.
///
/// config.on_error = kStrict: the first bad line of the data throws kData with FILE:LINE:BYTE (line and byte
/// from 1) and the reason, and no output is left. kSkip: bad lines are counted, logged by reason and written
/// to config.rejects. A line whose text the tokenizer refuses is a bad line, too.
///
/// config.resume: after any interruption, even kill -9, PREFIX.resume.json and the .partial files next to the
/// output say where to continue. The finished files have the same bytes as those of an uninterrupted run.
/// kUsage if inputs or options differ from those of the interrupted run. Throws Stopped
/// (io/streams/stop_signal.h) if a StopSignal exists and receives a signal.
///
/// Memory does not depend on the number of lines. It stays below the sum of: 128 MiB; 8 MiB for each worker
/// after the second; 4 MiB for each key after the first; twice the longest line; the decompressor's memory;
/// and, if duplicates are left out, ContentSet::kBytesEach bytes per document. This assumes that the
/// tokenizer itself takes at most half of that sum, as our BPE does. With one worker, all work is done on the
/// caller's thread; compressed input adds one thread.
PreprocessSummary preprocess(const PreprocessConfig& config, const Tokenizer& tokenizer);

/// The program megalith-preprocess without --shard: opens the tokenizer, preprocesses, and logs Megatron's
/// lines. Returns the exit code: 0 on success; after SIGTERM or SIGINT, 75 if the same command can resume
/// (config.resume), otherwise 128 plus the signal's number. `files`: the files that the program reads besides
/// those that the options name; no output may replace them.
int run_preprocess(const PreprocessConfig& config, const TokenizerConfig& tokenizer_config, RunFiles files);

/// The program with --shard: does one shard after another, each as run_preprocess() does with --resume, and
/// returns the exit code: 0 if all are complete; 75 after SIGTERM, SIGINT, SIGUSR1 or SIGHUP. A shard that
/// ends with an error that another attempt would meet, too (exit codes 64 to 66), leaves its reason (see
/// data/shards/shard_failure.h). Two attempts at one shard leave one whole set of files: the second is
/// refused with kComm or, where the file system has no locks, works on files of its own and cannot be
/// resumed.
int run_preprocess_shards(const PreprocessConfig& config, const TokenizerConfig& tokenizer_config,
                          const RunFiles& files);

}  // namespace megalith
