#include "libcore/convert/convert.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/reader.h"
#include "libcore/checkpoint/writer.h"
#include "libcore/convert/adapter.h"
#include "libcore/convert/check.h"
#include "libcore/convert/tokenizer_folder.h"

namespace megalith {

namespace fs = std::filesystem;

std::optional<uint64_t> parse_size(std::string_view text) {
  struct Unit {
    std::string_view name;
    uint64_t bytes;
  };
  constexpr Unit kUnits[] = {{"KiB", uint64_t{1} << 10},
                             {"MiB", uint64_t{1} << 20},
                             {"GiB", uint64_t{1} << 30},
                             {"KB", 1000},
                             {"MB", 1'000'000},
                             {"GB", 1'000'000'000},
                             {"B", 1},
                             {"", 1}};
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    const auto number = parse_int(text.substr(0, text.size() - unit.name.size()));
    uint64_t bytes = 0;
    if (!number || *number < 1 || __builtin_mul_overflow(static_cast<uint64_t>(*number), unit.bytes, &bytes))
      return {};
    return bytes;
  }
  return {};
}

void ConvertConfig::validate(Problems& problems) const {
  if (input.size() > 2 || (input.size() == 2 && input[0] != "inspect"))
    problems.add("one input is wanted, given are ", quote(input[0]), " and ", quote(input[1]));
  if (input.size() == 1 && input[0] == "inspect") problems.add("inspect what? give a path");
  if (!parse_size(max_shard_size))
    problems.add("--max-shard-size ", quote(max_shard_size),
                 " is no size; wanted a number with MB, GB, MiB or GiB, as 5GB");
  if (vocab_file.empty() != merge_file.empty())
    problems.add(vocab_file.empty() ? "--merge-file needs --vocab-file" : "--vocab-file needs --merge-file");
  if (!tokenizer.empty() + !tokenizer_model.empty() + !vocab_file.empty() > 1)
    problems.add("--tokenizer, --tokenizer-model and --vocab-file name a tokenizer each; give one");
  if (dtype == "q8_0" && to != "gguf") problems.add("--dtype q8_0 needs --to gguf");
  if (to != "megatron" && (tensor > 1 || pipeline > 1))
    problems.add("--tp and --pp need --to megatron; the other formats have no parallel layout");
}

SourceOptions ConvertConfig::source_options() const {
  return {.vocab_size = vocab_size,
          .heads = heads,
          .tokenizer = tokenizer,
          .crc = crc ? CrcCheck::kYes : CrcCheck::kNo};
}

namespace {

std::optional<DType> dtype_of(const ConvertConfig& config) {
  for (const DType dtype : {DType::kF32, DType::kBf16, DType::kF16})
    if (config.dtype == name_of(dtype)) return dtype;
  return {};
}

std::optional<Storage> storage_of(const ConvertConfig& config) {
  if (config.dtype == "q8_0") return Storage::kQ8;
  if (const auto dtype = dtype_of(config)) return storage_of(*dtype);
  return {};
}

// "checkpoint/" and "checkpoint.pt" give "checkpoint-hf".
std::string default_output(const ConvertConfig& config) {
  fs::path path = fs::path(config.path()).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();
  if (path.has_extension() && !fs::is_directory(path)) path.replace_extension();
  return path.string() + "-" + config.to;
}

std::string text_of(const OutputPlan& plan, const ConvertConfig& config) {
  return config.json ? json_of(plan).dump(2) + "\n" : table_of(plan);
}

// What a target plans and writes.
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

std::string finish(const ConvertConfig& config, const Target& target) {
  if (config.dry_run) return text_of(target.plan(), config);
  const std::string output = config.output.empty() ? default_output(config) : config.output;
  target.write(output);
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
  const auto dtype = dtype_of(config);
  return finish(config, {[&] { return plan_adapter(adapter, dtype); },
                         [&](const std::string& output) { export_adapter(adapter, output, dtype); }});
}

// A tokenizer that was named file by file, as the folder that everything else takes; removed at the end.
class TokenizerFolder {
 public:
  explicit TokenizerFolder(const ConvertConfig& config) {
    if (!config.vocab_file.empty()) {
      copy(config.vocab_file, "vocab.json");
      copy(config.merge_file, "merges.txt");
    } else if (!config.tokenizer_model.empty() && !fs::is_directory(config.tokenizer_model)) {
      copy(config.tokenizer_model,
           config.tokenizer_model.ends_with(".json") ? "tokenizer.json" : "tokenizer.model");
    } else {
      const bool by_model = config.tokenizer.empty();
      path_ = by_model ? config.tokenizer_model : config.tokenizer;
      if (!path_.empty() && tokenizer_in(path_).type.empty())
        fail(ErrorKind::kNoInput, by_model ? "--tokenizer-model " : "--tokenizer ", quote(path_),
             " holds no tokenizer's files");
    }
  }
  const std::string& path() const { return path_; }  // empty: none was named

 private:
  void copy(const std::string& file, const char* name) {
    if (!folder_) folder_.emplace(fs::temp_directory_path() / "megalith-tokenizer");
    path_ = folder_->path().string();
    write_file(path_ + "/" + name, read_file(file));
  }

  std::optional<AtomicDirectory> folder_;
  std::string path_;
};

std::string convert_model(ConvertConfig config) {
  const TokenizerFolder named(config);
  config.tokenizer = named.path();
  const ModelSource source(config.path(), config.source_options());
  std::optional<Adapter> adapter;
  std::unique_ptr<TensorFile> merged;
  if (!config.adapter.empty())
    merged = merge_adapter(source.tensors(), source.config(), adapter.emplace(config.adapter));
  const Conversion conversion{
      .source = source,
      .tokenizer_folder = config.tokenizer.empty() ? source.tokenizer_folder() : config.tokenizer,
      .dtype = dtype_of(config),
      .tensors = merged.get(),
      .check = config.check};
  return finish(config, target_of(config, conversion));
}

}  // namespace

std::string run_convert(const ConvertConfig& config) {
  if (config.inspects()) {
    const TokenizerFolder named(config);
    SourceOptions options = config.source_options();
    options.tokenizer = named.path();
    const Json inspected = inspect(config.path(), options);
    return config.json ? inspected.dump(2) + "\n" : inspect_text(inspected);
  }
  return is_adapter(config.path()) ? convert_adapter(config) : convert_model(config);
}

OutputCheck::OutputCheck(const Conversion& conversion) : conversion_(conversion) {
  if (wanted())
    source_side_ =
        std::async(std::launch::async, [this] { return checked_side(conversion_.view(), {.stop = &stop_}); });
}

OutputCheck::~OutputCheck() {
  stop_ = true;  // and the futures wait
  if (files_) files_->abandon();
}

void OutputCheck::compare(const ModelView& written, bool rounded) {
  compare_with(checked_side(written, {.threads = kCheckThreads}), rounded);
}

void OutputCheck::compare_with(const CheckedSide& written, bool rounded) {
  const Comparison found = compare_sides(source_side_.get(), written);
  log(text_of(found));
  if (!rounded && found.greatest > kSameModel * found.greatest_logit)
    fail(ErrorKind::kInternal, written.path, ": the written model computes other logits (by up to ",
         format_scientific(found.greatest, 1), ") than ", conversion_.source.path());
}

void OutputCheck::follow(PlacedFiles& files, Follow side) {
  if (!wanted()) return;
  files_ = &files;
  // Made here, so that nothing is given away before the thread runs.
  auto reader = std::make_shared<PlacedFiles::Reader>(files);
  written_side_ = std::async(std::launch::async, [this, side = std::move(side), reader]() mutable {
    const auto ended = std::move(reader);
    return side({.stop = &stop_});
  });
}

void OutputCheck::compare_followed(bool rounded) {
  if (wanted()) compare_with(written_side_.get(), rounded);
}

OutputPlan plan_checkpoint(const Conversion& conversion) {
  OutputFile file{.name = iteration_folder(kRelease) + "/data_00000.safetensors"};
  for (const StoredTensor& tensor : conversion.file().tensors()) {
    if (tensor.name.starts_with(kOptimizerPrefix)) continue;
    const Shape shape = tensor.shape();
    file.tensors.push_back({tensor.name, storage_of(conversion.dtype_of(tensor)), shape,
                            copy_recipe(tensor.name, {shape, shape.rank == 1})});
  }
  return {std::move(file)};
}

void export_checkpoint(const Conversion& conversion, const std::string& root) {
  if (latest_checkpoint(root))
    fail(ErrorKind::kUsage, "--output ", root, " holds checkpoints already; give a new folder");
  const ModelSource& source = conversion.source;
  const std::string& tokenizer_folder = conversion.tokenizer_folder;
  OutputCheck check(conversion);
  CheckpointWriter writer(root, kRelease);
  Progress progress("writing", static_cast<int64_t>(bytes_of(plan_checkpoint(conversion))), "B");
  int64_t done = 0;
  for (const StoredTensor& tensor : conversion.file().tensors()) {
    if (tensor.name.starts_with(kOptimizerPrefix)) continue;
    writer.put(Box::whole(tensor.name, tensor.shape()), conversion.dtype_of(tensor), tensor.shape(),
               [&](const Box& part, View out) {
                 conversion.file().read(part, out);
                 progress.advance_to(done += static_cast<int64_t>(out.bytes()));
               });
  }
  Json args = to_json(source.config());
  if (!tokenizer_folder.empty()) {
    for (const auto& [name, contents] : tokenizer_files_of(tokenizer_folder))
      writer.put_text(concat(kTokenizerFolder, "/", name), contents);
    args.set("tokenizer_type", tokenizer_in(tokenizer_folder, source.tokenizer().type).type);
  }
  writer.put_json(kArgsFile, args);
  writer.put_json(kStateFile, Json::Object{{"iteration", 0},
                                           {"consumed_train_samples", 0},
                                           {"consumed_valid_samples", 0},
                                           {"schedule_samples", 0},
                                           {"skipped_iterations", 0}});
  writer.commit([&](const std::string& folder) {
    if (!check.wanted()) return;
    const ModelSource written(folder);
    check.compare(written.view(), conversion.rounds());
  });
}

}  // namespace megalith
