// megalith-preprocess --shard.
#include <algorithm>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/data/indexed/index_check.h"
#include "libcore/data/preprocess/preprocess_stages.h"
#include "libcore/data/shards/shard_failure.h"
#include "libcore/data/shards/shard_plan.h"
#include "libcore/data/shards/tar_writer.h"
#include "libcore/io/files/temporary_folder.h"
#include "libcore/io/run/lock_file.h"
#include "libcore/io/streams/standard_streams.h"
#include "libcore/io/streams/stop_signal.h"

namespace megalith {
namespace {

constexpr std::string_view kAuto = "auto";

bool reads_stdin(const PreprocessConfig& config) {
  return config.inputs == std::vector<std::string>{"-"};
}
bool writes_stdout(const PreprocessConfig& config) {
  return config.output_prefix == "-";
}

/// A folder for the files of a shard that go to stdout.
class Spool {
 public:
  const std::string& path() const { return folder_.path(); }

  /// Writes all files to stdout. The sidecars are the last, so that an archive that was cut off has no
  /// dataset.
  void write() const {
    std::vector<std::string> names, sidecars;
    for (const auto& entry : std::filesystem::directory_iterator(path())) {
      std::string name = entry.path().filename().string();
      (name.ends_with(".json") ? sidecars : names).push_back(std::move(name));
    }
    TarWriter tar(write_stdout);
    for (std::vector<std::string>* list : {&names, &sidecars}) {
      std::sort(list->begin(), list->end());
      for (const std::string& name : *list) tar.add(name, path() + "/" + name);
    }
    tar.finish();
  }

 private:
  OwnFolder folder_;
};

/// The options of a run whose output goes to the folder of a spool.
PreprocessConfig config_of(const PreprocessConfig& config, const Spool& spool) {
  PreprocessConfig own = config;
  own.output_prefix = spool.path() + "/shard";
  if (!own.rejects.empty())
    own.rejects = spool.path() + "/" + std::filesystem::path(own.rejects).filename().string();
  own.resume = false;
  return own;
}

/// The options of a run of one shard.
PreprocessConfig config_of(const PreprocessConfig& config, const Shard& shard) {
  PreprocessConfig own = config;
  own.output_prefix += shard.suffix();
  if (!own.rejects.empty()) own.rejects += shard.suffix();
  if (!own.dedup_read.empty()) own.dedup = Dedup::kExact;
  return own;
}

/// What the names of a run's datasets end with: "text_document".
std::vector<std::string> dataset_names(const PreprocessConfig& config) {
  std::vector<std::string> names;
  for (const std::string& key : config.json_keys)
    names.push_back(config.prefix_of(key).substr(config.output_prefix.size() + 1));
  return names;
}

bool has_size(const std::string& path, uint64_t bytes) {
  return file_exists(path) && file_size(path) == bytes;
}

/// Whether the dataset is complete, with the files that its sidecar describes. `rejects`: the shard's file of
/// rejected lines; empty if it has none.
bool is_complete(const std::string& prefix, const std::string& rejects, const ShardRecord& wanted) {
  const std::optional<Sidecar> sidecar = read_sidecar(prefix);
  if (!sidecar || !sidecar->shard || sidecar->bin_parts.size() != 1) return false;
  ShardRecord found = wanted;
  found.rejects = sidecar->shard->rejects;              // which are not known before
  if (!wanted.seen) found.seen = sidecar->shard->seen;  // their folder may have been removed since
  if (!rejects.empty() && !(found.rejects && has_size(rejects, found.rejects->content.bytes))) return false;
  const IndexHeader header{.sequences = sidecar->sequences, .entries = sidecar->documents + 1};
  return found == *sidecar->shard && has_size(prefix + ".bin", sidecar->bin_parts.front().bytes) &&
         has_size(prefix + ".idx", header.file_size());
}

/// Keeps the hashes of a shard's documents.
class HashSink final : public BatchSink {
 public:
  HashSink(const PreprocessConfig& config, const std::vector<InputFile>& files)
      : config_(config), files_(files) {}

  const SourceMark& start() const override { return begin_; }
  void take(DocumentBatch& batch) override {
    if (config_.on_error == OnError::kStrict && !batch.bad.empty())
      fail_at(config_, files_[batch.end.input], batch, batch.bad.front());
    hashes_.insert(hashes_.end(), batch.hashes.begin(), batch.hashes.end());
    if (batch.lines.capacity() > kKeptBatch) batch = DocumentBatch{};
  }
  std::deque<ContentHash> take_hashes() { return std::move(hashes_); }

 private:
  const PreprocessConfig& config_;
  const std::vector<InputFile>& files_;
  SourceMark begin_;
  std::deque<ContentHash> hashes_;  // of which no part is copied when there are more
};

/// One shard's run.
class ShardRun {
 public:
  ShardRun(const PreprocessConfig& config, const Shard& shard, const TextTools& tools)
      : shard_(shard), config_(config_of(config, shard)), tools_(tools) {}

  /// Does what is not done yet. Calls `check` before anything is written.
  void go(const ShardPlan& plan, const std::vector<PlannedFile>& files, const Interrupt& interrupt,
          const std::function<void()>& check) {
    inputs_.shard = record(plan);
    const std::vector<ShardPart> parts = plan.parts(shard_.index);
    inputs_.shard->content = plan.content(parts);
    const HashesOf of = hashes_of(config_, *inputs_.shard);
    if (!config_.dedup_read.empty()) inputs_.shard->seen = seen_digest(config_.dedup_read, of);
    if (config_.dedup_write.empty() ? is_done(of) : has_hashes(config_.dedup_write, of)) {
      log(name(), ": already complete");
      return;
    }
    look_at(parts, files);
    if (reads_stdin(config_)) inputs_.files = look_at_inputs(config_.inputs, config_.text);
    check();
    remove_file(failure_path(config_.output_prefix));
    log(name(), ": reading ", reads_stdin(config_) ? "stdin" : describe(parts));
    if (!config_.dedup_write.empty()) return hash_documents(of, interrupt);
    if (config_.resume && !locks_work()) {
      log(name(), ": the file system has no locks, so this shard cannot be resumed");
      config_.resume = false;
    }
    run_job({config_, tools_, interrupt}, inputs_);
  }

  std::string name() const { return concat("shard ", shard_.index, " of ", shard_.count); }
  const PreprocessConfig& config() const { return config_; }
  const RunInputs& inputs() const { return inputs_; }

 private:
  void hash_documents(const HashesOf& of, const Interrupt& interrupt) {
    HashSink sink(config_, inputs_.files);
    run_pipeline({config_, tools_, interrupt}, inputs_.files, sink);
    std::deque<ContentHash> hashes = sink.take_hashes();
    log(name(), ": ", format_count(static_cast<int64_t>(hashes.size())), " documents");
    write_hashes(config_.dedup_write, of, std::move(hashes));
  }

  void look_at(const std::vector<ShardPart>& parts, const std::vector<PlannedFile>& files) {
    std::vector<std::string> names;
    for (const ShardPart& part : parts)
      if (files[part.file].object)
        names.push_back(files[part.file].path);
      else
        inputs_.files.push_back(look_at_part(files[part.file], part));
    if (!names.empty()) inputs_.files = look_at_objects(config_, names);
  }

  ShardRecord record(const ShardPlan& plan) const {
    return {.index = shard_.index,
            .count = shard_.count,
            .plan = plan.digest(),
            .options = options_digest(config_, tools_),
            .begin = plan.edge(shard_.index),
            .end = plan.edge(shard_.index + 1),
            .datasets = dataset_names(config_)};
  }

  bool is_done(const HashesOf& of) const {
    if (reads_stdin(config_)) return false;  // other lines may come than before
    try {
      // Step 1 was done again since, for this shard or an earlier one.
      if (!config_.dedup_read.empty() && !inputs_.shard->seen && has_hashes(config_.dedup_read, of))
        return false;
      return std::all_of(config_.json_keys.begin(), config_.json_keys.end(), [&](const auto& key) {
        return is_complete(config_.prefix_of(key), config_.rejects, *inputs_.shard);
      });
    } catch (const Error& error) {
      log(error.what(), "; doing ", name(), " again");
      return false;
    }
  }

  std::string describe(const std::vector<ShardPart>& parts) const {
    if (!config_.input_command.empty())
      return concat(parts.size(), parts.size() == 1 ? " object" : " objects");
    uint64_t bytes = 0;
    for (const ShardPart& part : parts) bytes += part.bytes;
    return concat(format_bytes(static_cast<double>(bytes)), " of ", parts.size(),
                  parts.size() == 1 ? " file" : " files");
  }

  bool locks_work() const {
    make_directories(parent_or_here(config_.output_prefix));
    return LockFile(config_.output_prefix).held();
  }

  Shard shard_;
  PreprocessConfig config_;
  const TextTools& tools_;
  RunInputs inputs_;
};

/// Whether another attempt would end in the same way.
bool is_final(ErrorKind kind) {
  return kind == ErrorKind::kUsage || kind == ErrorKind::kData || kind == ErrorKind::kNoInput;
}

/// Leaves the reason with each of the shards. If it cannot be written, `error` still is the one that counts:
/// the exit code would otherwise tell the engine to try again.
void leave_reason(const PreprocessConfig& config, const ShardRange& shards, const Error& error) {
  if (!is_final(error.kind()) || writes_stdout(config)) return;
  try {
    for (int64_t index = shards.first; index <= shards.last; ++index)
      write_failure(config.output_prefix + Shard{index, shards.count}.suffix(),
                    {exit_code(error.kind()), error.what()});
  } catch (const Error& unwritten) {
    warn(unwritten.what());
  }
}

std::vector<PlannedFile> planned_inputs(const PreprocessConfig& config) {
  if (reads_stdin(config)) return {};
  if (config.input_command.empty()) return planned_files(config.inputs, config.text);
  std::vector<PlannedFile> objects;
  for (std::string& name : listed_objects(config.inputs)) objects.push_back({std::move(name), 1, true});
  return objects;
}

/// Does the shards, also those after one that cannot be done. Returns the exit code of the first that failed.
int run_each(const PreprocessConfig& config, const TokenizerConfig& tokenizer_config,
             const ShardRange& shards, const RunFiles& files, const Interrupt& interrupt) {
  const std::vector<PlannedFile> planned = planned_inputs(config);
  const ShardPlan plan(planned, config.text, shards.count, config.shard_by);
  InputFile all{.path = {}, .pipe = !config.input_command.empty()};
  for (const PlannedFile& file : planned) all.size += file.size / static_cast<uint64_t>(shards.count);
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(config, tokenizer_config, {all});
  const TextTools tools = text_tools(config, *tokenizer);
  log_settings(config, *tokenizer);
  int code = 0;
  for (int64_t index = shards.first; index <= shards.last; ++index) {
    ShardRun run(config, {index, shards.count}, tools);
    try {
      run.go(plan, planned, interrupt,
             [&] { check_files(run.config(), tokenizer_config, run.inputs().files, files); });
    } catch (const Error& error) {
      if (!is_final(error.kind()) || shards.first == shards.last) throw;
      tell("preprocess: error: ", run.name(), ": ", error.what());
      leave_reason(config, {index, index, shards.count}, error);
      if (code == 0) code = exit_code(error.kind());
      interrupt.clear();  // the error set it, and every read of the next shard's objects would fail
      stop_if_asked();    // a signal may have set it
    }
  }
  return code;
}

}  // namespace

ShardRange PreprocessConfig::named_shards() const {
  if (shard != kAuto) return *parse_shards(shard);
  const std::optional<EngineIndex> engine = engine_index();
  if (!engine)
    fail(ErrorKind::kUsage,
         "--shard auto: none of MEGALITH_SHARD, SLURM_ARRAY_TASK_ID, SLURM_PROCID (in a step) "
         "and JOB_COMPLETION_INDEX is set; give the number, as in --shard 0/",
         *shards);
  if (engine->index >= *shards)
    fail(ErrorKind::kUsage, "--shard auto: ", engine->variable, "=", engine->index, " is not below --shards ",
         *shards, "; shards are numbered from 0: an array of Slurm is --array=0-", *shards - 1);
  log("--shard auto: shard ", engine->index, " of ", *shards, ", by ", engine->variable);
  return {engine->index, engine->index, *shards};
}

void validate_shards(const PreprocessConfig& config, Problems& problems) {
  for (const auto& [folder, name] :
       {std::pair(&config.dedup_write, "dedup-write"), {&config.dedup_read, "dedup-read"}})
    if (config.shard.empty() && !folder->empty()) problems.add(Opt{name}, " needs ", Opt{"shard"});
  if (!config.dedup_write.empty() && !config.dedup_read.empty())
    problems.add(Opt{"dedup-write"}, " and ", Opt{"dedup-read"},
                 " are two runs, with megalith-data dedup between them");
  if (writes_stdout(config) && (config.shard.empty() || !config.dedup_write.empty()))
    problems.add(Opt{"output-prefix"}, " -, a tar archive on stdout, is for the datasets of one shard; give ",
                 Opt{"shard"}, " I/N, or the prefix of files");
  if (config.shard.empty()) {
    if (config.shards) problems.add(Opt{"shards"}, " needs ", Opt{"shard"}, " auto");
    if (config.shard_by != ShardBy::kBytes) problems.add(Opt{"shard-by"}, " needs ", Opt{"shard"});
    return;
  }
  const auto named = parse_shards(config.shard);
  if (config.shard == kAuto && !config.shards)
    problems.add(Opt{"shard"}, " auto needs ", Opt{"shards"},
                 ", the number of all shards (engines give the number of those that run now)");
  if (config.shard != kAuto && !named)
    problems.add(Opt{"shard"}, ' ', quote(config.shard),
                 ": wanted I/N or I-J/N with 0 <= I <= J < N <= ", kMaxShards, ", or auto");
  if (named && config.shards && *config.shards != named->count)
    problems.add(Opt{"shard"}, ' ', config.shard, " and ", Opt{"shards"}, ' ', *config.shards,
                 " contradict each other; leave the second out");
  const bool several = named && named->first != named->last,
             stdin_given = std::count(config.inputs.begin(), config.inputs.end(), "-") > 0;
  if (stdin_given && (several || config.inputs.size() > 1))
    problems.add(Opt{"shard"}, ": stdin (\"-\") holds the lines of one shard; wanted it alone, or files");
  if (writes_stdout(config) && several)
    problems.add(Opt{"output-prefix"}, " - is for one shard, not for ", config.shard);
  if (writes_stdout(config) && config.resume)
    problems.add(Opt{"resume"}, " needs files, and ", Opt{"output-prefix"}, " - is stdout");
  if (config.dedup != Dedup::kNone)
    problems.add(Opt{"dedup"}, " exact and ", Opt{"shard"},
                 " contradict each other: a shard does not know the documents of the others; give ",
                 Opt{"dedup-write"}, ", then ", Opt{"dedup-read"});
}

int run_preprocess_shards(const PreprocessConfig& config, const TokenizerConfig& tokenizer_config,
                          const RunFiles& files) {
  const Interrupt interrupt;
  const StopSignal signal(&interrupt);
  const ShardRange shards = config.named_shards();
  const bool repeats = !reads_stdin(config) && !writes_stdout(config),
             resumes = repeats && config.dedup_write.empty();
  try {
    if (writes_stdout(config)) {
      const Spool spool;
      run_each(config_of(config, spool), tokenizer_config, shards, files, interrupt);
      spool.write();
      return 0;
    }
    PreprocessConfig own = config;
    own.resume = resumes;
    return run_each(own, tokenizer_config, shards, files, interrupt);
  } catch (const Stopped& stopped) {
    const char* const again = resumes ? "; run the same command to resume" : "; run the same command again";
    tell("stopped by ", stopped.name, repeats ? again : "; nothing was written");
    return exit_code(ErrorKind::kComm);
  } catch (const Error& error) {
    leave_reason(config, shards, error);
    throw;
  }
}

}  // namespace megalith
