// What tells one run from another: which state it may continue, which hashes and shards fit it.
#include <filesystem>
#include <string>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/data/preprocess/preprocess_stages.h"

namespace megalith {
namespace {

Json identity_of(const InputFile& file) {
  if (!file.command.empty()) return Json::Object{{"object", file.path}};
  if (file.pipe)
    fail(ErrorKind::kUsage, "--resume: ", quote(shown_input(file.path)),
         " cannot be read a second time; wanted files");
  return Json::Object{{"path", file.path}, {"bytes", file.size}, {"modified_ns", file.modified}};
}

/// The identity of files that are too many to name each: a folder may have a file for each text.
Json identity_of_many(const std::vector<InputFile>& files) {
  Xxh64 hash;
  for (const InputFile& file : files) {
    const std::string one = identity_of(file).dump() + '\n';
    hash.update(one.data(), one.size());
  }
  return Json::Object{{"files", files.size()}, {"xxh64", hex64(hash.digest())}};
}

/// The identity of a run: a run can continue an earlier one only if their identities are equal.
/// A shard's inputs are named without their paths and times, which are those of one machine.
Json identity_of(const RunInputs& inputs) {
  if (inputs.shard)
    return Json::Object{{"shard", concat(inputs.shard->index, '/', inputs.shard->count)},
                        {"plan", inputs.shard->plan},
                        {"content", inputs.shard->content},
                        {"seen", inputs.shard->seen.value_or("")}};
  constexpr size_t kMostNamed = 1000;
  if (inputs.files.size() > kMostNamed) return identity_of_many(inputs.files);
  Json files = Json::array();
  for (const InputFile& file : inputs.files) files.push_back(identity_of(file));
  return files;
}

}  // namespace

Json options_json(const PreprocessConfig& config, const TextTools& tools) {
  const Json all = to_json(config);
  Json options = Json::object();
  const auto take = [&](const char* name) { options.set(name, all[name]); };
  for (const char* name :
       {"append_eod", "on_error", "max_document_bytes", "min_chars", "dedup", "split_sentences"})
    take(name);
  if (config.text != TextUnit::kNone) take("text");
  if (tools.splitter) {
    take("lang");
    options.set("punkt_hash", tools.splitter->parameters().hash);
    take("keep_newlines");
  }
  return options;
}

Json identity_of(const PreprocessConfig& config, const RunInputs& inputs, const TextTools& tools) {
  Json run = Json::Object{{"version", 2}, {"inputs", identity_of(inputs)}};
  // Texts have no keys, so neither kind of run continues one of the other kind.
  if (config.text == TextUnit::kNone) run.set("json_keys", to_json(config)["json_keys"]);
  run.set("tokenizer", tools.tokenizer.name() + " " + tools.tokenizer_hash);
  run.set("rejects",
          inputs.shard ? std::filesystem::path(config.rejects).filename().string() : config.rejects);
  const Json options = options_json(config, tools);
  for (const auto& [name, value] : options.as_object()) run.set(name, value);
  return run;
}

HashesOf hashes_of(const PreprocessConfig& config, const ShardRecord& shard) {
  Json options = Json::object();
  const Json all = to_json(config);
  for (const char* name : {"json_keys", "min_chars", "max_document_bytes"}) options.set(name, all[name]);
  return {{shard.index, shard.count}, shard.plan, hex64(xxh64(options.dump())), shard.content};
}

std::string options_digest(const PreprocessConfig& config, const TextTools& tools) {
  Json all = options_json(config, tools);
  all.set("tokenizer", tools.tokenizer.name() + " " + tools.tokenizer_hash);
  all.set("vocab_size", tools.tokenizer.vocab_size());
  all.set("json_keys", to_json(config)["json_keys"]);
  all.set("rejects", !config.rejects.empty());
  return hex64(xxh64(all.dump()));
}

}  // namespace megalith
