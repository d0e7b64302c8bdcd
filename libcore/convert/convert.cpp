#include "libcore/convert/convert.h"

#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/reader.h"
#include "libcore/checkpoint/writer.h"
#include "libcore/convert/tokenizer_folder.h"

namespace megalith {

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
  if (!parse_size(max_shard_size))
    problems.add("--max-shard-size ", quote(max_shard_size),
                 " is no size; wanted a number with MB, GB, MiB or GiB, as 5GB");
}

SourceOptions ConvertConfig::source_options() const {
  return {.vocab_size = vocab_size,
          .heads = heads,
          .tokenizer = tokenizer,
          .crc = crc ? CrcCheck::kYes : CrcCheck::kNo};
}

void run_convert(const ConvertConfig& config) {
  if (!config.tokenizer.empty() && tokenizer_in(config.tokenizer).type.empty())
    fail(ErrorKind::kNoInput, "--tokenizer ", quote(config.tokenizer), " holds no tokenizer's files");
  const ModelSource source(config.source, config.source_options());
  const std::string tokenizer = config.tokenizer.empty() ? source.tokenizer_folder() : config.tokenizer;
  const Conversion conversion{.source = source, .tokenizer_folder = tokenizer};
  if (config.to == "hf")
    export_hf(conversion, config.output, *parse_size(config.max_shard_size));
  else
    export_checkpoint(conversion, config.output);
  log("wrote ", config.output);
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
  CheckpointWriter writer(root, kRelease);
  for (const StoredTensor& tensor : conversion.file().tensors()) {
    if (tensor.name.starts_with(kOptimizerPrefix)) continue;
    const Box box = Box::whole(tensor.name, tensor.shape());
    writer.put(box, conversion.dtype_of(tensor), tensor.shape(),
               [&conversion, box](View out) { conversion.file().read(box, out); });
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
  writer.commit();
}

}  // namespace megalith
