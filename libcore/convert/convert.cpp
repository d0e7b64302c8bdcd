#include "libcore/convert/convert.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/convert/inspect.h"
#include "libcore/convert/output/adapter.h"
#include "libcore/convert/output/conversion.h"
#include "libcore/convert/sources/model_files.h"
#include "libcore/convert/sources/tokenizer_folder.h"
#include "libcore/convert/targets/gguf.h"
#include "libcore/convert/targets/hf.h"
#include "libcore/convert/targets/megalith.h"
#include "libcore/convert/targets/megatron.h"
#include "libcore/io/cache/hf_cache.h"
#include "libcore/io/files/file.h"
#include "libcore/io/run/lock_file.h"
#include "libcore/io/run/run_files.h"
#include "libcore/io/streams/stop_signal.h"
#include "libcore/text/tokenizer_files.h"

namespace megalith {

namespace {

namespace fs = std::filesystem;

std::optional<Storage> storage_of(const ConvertConfig& config) {
  if (config.dtype == "q8_0") return Storage::kQ8;
  if (const auto dtype = named_dtype(config.dtype)) return storage_of(*dtype);
  return {};
}

// The output's name if the user gives none: "checkpoint-hf" for both "checkpoint/" and "checkpoint.pt".
std::string default_output(const ConvertConfig& config) {
  fs::path path = fs::path(config.path()).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();
  if (path.has_extension() && !fs::is_directory(path)) path.replace_extension();
  return path.string() + "-" + config.to;
}

// The width of a table on a terminal. Returns 0 for a pipe, whose lines are not broken.
size_t table_columns() {
  return ::isatty(STDOUT_FILENO) == 1 ? columns_of(STDOUT_FILENO) : 0;
}

std::string text_of(const OutputPlan& plan, const ConvertConfig& config) {
  return config.json ? json_of(plan).dump(2) + "\n" : table_of(plan, table_columns());
}

// The functions that plan and write a target.
struct Target {
  std::function<OutputPlan()> plan;
  std::function<void(const std::string& output)> write;
};

Target target_of(const ConvertConfig& config, const Conversion& conversion) {
  const uint64_t shard = *parse_size(config.max_shard_size);
  const MegatronLayout layout{.tensor = config.tensor,
                              .pipeline = config.pipeline,
                              .engine = config.transformer_impl == "transformer_engine"};
  const std::optional<Storage> type = storage_of(config);
  if (config.to == "hf")
    return {[=] { return plan_hf(conversion, shard); },
            [=](const std::string& output) { export_hf(conversion, output, shard); }};
  if (config.to == "megatron")
    return {[=] { return plan_megatron(conversion, layout); },
            [=](const std::string& output) { export_megatron(conversion, output, layout); }};
  if (config.to == "gguf")
    return {[=] { return plan_gguf(conversion, type); },
            [=](const std::string& output) { export_gguf(conversion, output, type); }};
  return {[=] { return plan_checkpoint(conversion); },
          [=](const std::string& output) { export_checkpoint(conversion, output); }};
}

// Whether the result goes into the folder of the input. It does if the input is a single weights file and no
// output is given, as the CodeParrot tutorial calls the conversion.
bool is_in_place(const ConvertConfig& config) {
  return config.output.empty() && config.to == "hf" && config.path().ends_with(".pt") &&
         !fs::is_directory(config.path());
}

bool same_contents(const fs::path& a, const fs::path& b) {
  return file_size(a.string()) == file_size(b.string()) && read_file(a.string()) == read_file(b.string());
}

// Throws kUsage if moving the files of `from` to `to` would replace a file by a different one. A file with
// equal contents may be there: the files of a tokenizer often are.
void refuse_other_files(const fs::path& from, const fs::path& to) {
  for (const auto& entry : fs::directory_iterator(from)) {
    const fs::path there = to / entry.path().filename();
    if (file_exists(there.string()) && !same_contents(entry.path(), there))
      fail(ErrorKind::kUsage, there.string(),
           " exists already; move it away, or give --output DIR, or --overwrite to replace it");
  }
}

// Moves the files of `from` to `to`, config.json last: a folder without it is not a model, so nobody mistakes
// half a model for one.
void move_beside(const fs::path& from, const fs::path& to) {
  const auto move = [&](const fs::path& name) {
    std::error_code why;
    fs::rename(from / name, to / name, why);
    if (why) fail(ErrorKind::kIo, (to / name).string(), ": cannot be written: ", why.message());
  };
  for (const auto& entry : fs::directory_iterator(from))
    if (entry.path().filename() != "config.json") move(entry.path().filename());
  move("config.json");
  sync_directory(to);
}

std::string finish_in_place(const ConvertConfig& config, const Target& target) {
  const fs::path folder = parent_or_here(fs::absolute(config.path()).lexically_normal());
  if (!config.overwrite && file_exists((folder / "config.json").string()))
    fail(ErrorKind::kUsage, (folder / "config.json").string(),
         " exists already; give --output DIR, or --overwrite to replace it");
  const StopSignal stop;
  const LockFile lock(folder.string());
  const AtomicDirectory aside(folder / ".convert");  // never committed: removed with its files at the end
  const fs::path written = aside.path() / folder.filename();
  target.write(written.string());
  if (!config.overwrite) refuse_other_files(written, folder);
  move_beside(written, folder);
  log("wrote ", folder.string());
  return {};
}

/// Throws kUsage if the output is an input or contains one.
void check_files(const ConvertConfig& config, const std::string& output) {
  RunFiles files;
  files.reads("--config", config.options_file);
  reads_model(files, "PATH", config.path());
  files.reads("--merge-adapter", config.adapter);
  files.reads("--tokenizer", config.tokenizer);
  files.reads("--tokenizer-model", config.tokenizer_model);
  files.reads("--vocab-file", config.vocab_file);
  files.reads("--merge-file", config.merge_file);
  if (config.to == "gguf")
    files.writes("--output", gguf_path(output).string());
  else
    files.replaces_folder("--output", output);
  files.check();
}

/// Throws kUsage if the conversion would replace an existing output.
void refuse_replacing(const ConvertConfig& config, const std::string& output) {
  if (config.overwrite) return;
  if (config.to != "gguf") return refuse_used(output, false);
  const std::string file = gguf_path(output).string();
  if (file_exists(file))
    fail(ErrorKind::kUsage, "--output ", file,
         " exists already; give a new file, or --overwrite to replace it");
}

std::string finish(const ConvertConfig& config, const Target& target) {
  if (config.dry_run) return text_of(target.plan(), config);
  if (is_in_place(config)) return finish_in_place(config, target);
  const std::string output = config.output.empty() ? default_output(config) : config.output;
  check_files(config, output);
  make_directories(parent_or_here((fs::path(output) / "").parent_path()));
  const StopSignal stop;
  const LockFile lock(output);
  refuse_replacing(config, output);
  try {
    target.write(output);
  } catch (...) {
    // Removes the folder only if it is empty: the folder of a model.gguf is created before the file.
    ::rmdir(output.c_str());
    throw;
  }
  log("wrote ", output);
  return {};
}

std::string convert_adapter(const ConvertConfig& config) {
  if (config.to != "hf" || !config.adapter.empty())
    fail(ErrorKind::kUsage, config.path(),
         " is an adapter, which can only be written as one; to merge it, give the model as the input and "
         "--merge-adapter ",
         config.path());
  const Adapter adapter(config.path());
  const auto dtype = named_dtype(config.dtype);
  return finish(
      config, {[&] { return plan_adapter(adapter, dtype); },
               [&](const std::string& output) { export_adapter(adapter, output, dtype, config.overwrite); }});
}

bool has_usual_names(const std::string& folder) {
  const auto found = find_tokenizer(folder);
  return found && (found->model.empty() || fs::is_directory(found->model) ||
                   is_tokenizer_file(fs::path(found->model).filename().string()));
}

TokenizerFolder gpt2_folder(const std::string& vocab, const std::string& merges) {
  return TokenizerFolder({{"vocab.json", vocab}, {"merges.txt", merges}});
}

TokenizerFolder folder_of(const std::string& name) {
  const std::string named = path_or_snapshot(name);
  for (const std::string& folder : {named, named + "/" + kTokenizerFolder})
    if (fs::is_directory(folder) && has_usual_names(folder)) return folder;
  const auto found = recognize_tokenizer(named);
  if (!found) fail(ErrorKind::kNoInput, name, ": there is no such file or folder", hub_remedy(name));
  if (!found->vocab.empty()) return gpt2_folder(found->vocab, found->merges);
  const bool json = found->type == "HuggingFaceTokenizer";
  return TokenizerFolder({{json ? "tokenizer.json" : "tokenizer.model", found->model}});
}

TokenizerFolder folder_of(const Opt& option, const std::string& name) {
  try {
    return folder_of(name);
  } catch (const Error& error) {
    fail(error.kind(), Phrase(option, ' ', error.what()).text());
  }
}

/// The tokenizer that the options name; empty if they name none.
TokenizerFolder named_tokenizer(const ConvertConfig& config) {
  if (!config.vocab_file.empty()) return gpt2_folder(config.vocab_file, config.merge_file);
  if (!config.tokenizer.empty()) return folder_of(Opt{"tokenizer"}, config.tokenizer);
  if (!config.tokenizer_model.empty()) return folder_of(Opt{"tokenizer-model"}, config.tokenizer_model);
  return {};
}

/// Whether a weights file lies where nothing says which tokenizer it has: without one beside it, and in no
/// run's folder.
bool lies_alone(const std::string& file) {
  return !find_tokenizer(parent_or_here(file).string()) && run_folder_of(file).empty();
}

/// GPT-2's files in the working folder, for Megatron's weights file alone in its folder, as the CodeParrot
/// tutorial has it; empty if they are not there.
TokenizerFolder tokenizer_here(const ConvertConfig& config) {
  const std::string vocab = "vocab.json", merges = "merges.txt";
  if (!is_in_place(config) || !file_exists(vocab) || !file_exists(merges) || !lies_alone(config.path()))
    return {};
  log("tokenizer: vocab.json and merges.txt of the working folder");
  return gpt2_folder(vocab, merges);
}

std::string convert_model(const ConvertConfig& config) {
  SourceOptions options = config.source_options();
  options.tokenizer = named_tokenizer(config);
  if (options.tokenizer.empty()) {
    options.tokenizer = tokenizer_here(config);
    options.beside = !options.tokenizer.empty();
  }
  const ModelSource source(config.path(), options);
  std::optional<Adapter> adapter;
  std::unique_ptr<TensorFile> merged;
  if (!config.adapter.empty())
    merged = merge_adapter(source.tensors(), source.config(), adapter.emplace(config.adapter));
  const Conversion conversion{
      .source = source,
      .tokenizer_folder = options.tokenizer.empty() ? source.tokenizer_folder() : options.tokenizer,
      .dtype = named_dtype(config.dtype),
      .tensors = merged.get(),
      .overwrite = config.overwrite,
      .check = config.check};
  return finish(config, target_of(config, conversion));
}

}  // namespace

std::string run_convert(const ConvertConfig& config) {
  if (config.inspects()) {
    SourceOptions options = config.source_options();
    options.tokenizer = named_tokenizer(config);
    const Json inspected = inspect(config.path(), options);
    return config.json ? inspected.dump(2) + "\n" : inspect_text(inspected, table_columns());
  }
  return is_adapter(config.path()) ? convert_adapter(config) : convert_model(config);
}

}  // namespace megalith
