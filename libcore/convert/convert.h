#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>

#include "libcore/base/file.h"
#include "libcore/config/fields.h"
#include "libcore/convert/check.h"
#include "libcore/convert/model_source.h"
#include "libcore/convert/model_view.h"
#include "libcore/convert/output.h"

namespace megalith {

/// Options of megalith-convert.
struct ConvertConfig {
  std::vector<std::string> input;  // a path, or "inspect" and a path
  std::string output, to = "hf";
  std::optional<std::string> dtype;
  int tensor = 1, pipeline = 1;
  std::string transformer_impl = "transformer_engine";
  std::string max_shard_size = "5GB";
  std::string tokenizer, tokenizer_model, vocab_file, merge_file, adapter;
  int64_t vocab_size = 0;
  int heads = 0;
  bool crc = true, check = true;
  bool dry_run = false, json = false;

  template <class V>
  void fields(V&& v) {
    v("input", input,
      "Checkpoint of Megalith or Megatron-LM (the folder that training saved into, one iteration's, one "
      "rank's, "
      "or a .pt file), or Hugging Face folder. `inspect PATH` lists what is there and converts nothing.",
      positional(), required(), metavar("[inspect] PATH"));
    v("output", output, "Folder to write; for gguf also a file that ends in .gguf.", metavar("DIR"),
      default_text("the input's path with -hf, -megatron, … after it"));
    v("to", to,
      "What to write: hf (a Hugging Face folder), megatron (Megatron's format torch), megalith (a checkpoint "
      "of "
      "weights) or gguf (for llama.cpp).",
      one_of({"hf", "megatron", "megalith", "gguf"}));
    v("dtype", dtype, "Type of the written parameters; q8_0 with gguf alone.",
      one_of({"fp32", "bf16", "fp16", "q8_0"}), default_text("as stored"));
    v("tp", tensor, "Tensor-parallel size of a Megatron checkpoint.", between(1, 1024),
      alias({"target-tensor-parallel-size", "tensor-model-parallel-size"}));
    v("pp", pipeline, "Pipeline-parallel size of a Megatron checkpoint.", between(1, 1024),
      alias({"target-pipeline-parallel-size", "pipeline-model-parallel-size"}));
    v("transformer-impl", transformer_impl,
      "Whose names a Megatron checkpoint has: Transformer Engine's layers, or Megatron's own (local).",
      one_of({"transformer_engine", "local"}));
    v("merge-adapter", adapter,
      "LoRA adapter (a folder of peft) that is added to the weights: W + alpha / r * B A, in fp32, rounded "
      "once. "
      "An adapter given as PATH is written as an adapter.",
      metavar("DIR"));
    v("max-shard-size", max_shard_size,
      "Greatest size of one weights file of a Hugging Face folder: 500MB, 5GB, 4GiB.");
    v("tokenizer", tokenizer, "Folder with the tokenizer's files, in place of the model's own.",
      metavar("DIR"));
    v("vocab-file", vocab_file,
      "vocab.json of a GPT-2 tokenizer, with --merge-file, in place of --tokenizer.", metavar("FILE"),
      alias({"vocab"}));
    v("merge-file", merge_file, "merges.txt of a GPT-2 tokenizer.", metavar("FILE"), alias({"merges-file"}));
    v("tokenizer-model", tokenizer_model,
      "tokenizer.model of sentencepiece or tokenizer.json, in place of --tokenizer.", metavar("FILE"),
      alias({"tokenizer-name-or-path"}));
    v("vocab-size", vocab_size,
      "Ids of the tokenizer, without padding, of a Megatron checkpoint converted without --tokenizer.",
      between(0, 2147483647), default_text("from the tokenizer"));
    v("num-attention-heads", heads, "Attention heads of an old Megatron release that was saved without args.",
      at_least(0), default_text("from the checkpoint"));
    v("crc", crc, "Compare the checksums in torch's files when they are read.");
    v("check", check,
      "Run the model before and after the conversion on a few tokens and print the greatest difference of "
      "the "
      "logits.");
    v("dry-run", dry_run, "Print what would be written, tensor by tensor, and write nothing.");
    v("json", json, "Print the table of inspect or --dry-run as JSON.");
  }
  void validate(Problems&) const;
  SourceOptions source_options() const;
  bool inspects() const { return input.size() == 2; }
  const std::string& path() const { return input.back(); }
};

/// Bytes of "500MB" (10^6), "4GiB" (2^30), "12345"; nothing when it is no size.
std::optional<uint64_t> parse_size(std::string_view text);

/// Does what the options say and returns what belongs on stdout (of inspect and --dry-run). The output
/// appears complete or not at all.
std::string run_convert(const ConvertConfig& config);

/// What a target writes, and from what.
struct Conversion {
  const ModelSource& source;
  std::string tokenizer_folder = {};    // empty: none
  std::optional<DType> dtype = {};      // of all parameters; empty: each as it is stored
  const TensorFile* tensors = nullptr;  // under our names; null: the source's own
  bool check = false;                   // run the model on both sides before the output appears
  const TensorFile& file() const { return tensors ? *tensors : source.tensors(); }
  DType dtype_of(const StoredTensor& tensor) const { return dtype.value_or(*tensor.dtype); }
  /// Whether parameters are written in fewer bits than they have.
  bool rounds() const { return dtype && dtype != source.dtype() && dtype != DType::kF32; }
  /// In the order of the source's files, of a changed model in ours.
  ModelView view() const { return tensors ? our_view(*tensors, source.config()) : source.view(); }
  DType main_dtype() const { return dtype.value_or(source.dtype()); }
};

/// The check of a conversion: both models run on a few tokens. The source's side does so from the beginning,
/// on a thread of its own, while the output is written; so does the output's side where it can follow.
class OutputCheck {
 public:
  explicit OutputCheck(const Conversion& conversion);  // must outlive this
  ~OutputCheck();                                      // gives up what still runs
  OutputCheck(const OutputCheck&) = delete;
  OutputCheck& operator=(const OutputCheck&) = delete;

  bool wanted() const { return conversion_.check; }
  /// Logs how far the logits are apart. kInternal when they are not the same model; a narrower type that was
  /// asked for (`rounded`) may change it.
  void compare(const ModelView& written, bool rounded);

  /// Runs the written model, which is opened, but whose tensors are still to come.
  using Follow = std::function<CheckedSide(const CheckRun&)>;
  /// Begins that on a thread of its own, if the check is wanted. `files` outlive this.
  void follow(PlacedFiles& files, Follow side);
  /// compare() with what follow() began.
  void compare_followed(bool rounded);

 private:
  void compare_with(const CheckedSide& written, bool rounded);

  const Conversion& conversion_;
  std::atomic<bool> stop_ = false;
  PlacedFiles* files_ = nullptr;
  std::future<CheckedSide> source_side_, written_side_;
};

/// The files of a Hugging Face folder's weights, each of at most `max_shard` bytes (one tensor is never
/// divided).
OutputPlan plan_hf(const Conversion& conversion, uint64_t max_shard);
/// Writes the folder: config.json, generation_config.json, weights, the tokenizer's files and README.md. An
/// earlier export is replaced; kUsage when the folder holds anything else.
void export_hf(const Conversion& conversion, const std::string& output, uint64_t max_shard = UINT64_MAX);

/// Writes the weights as ROOT/release with its tracker, for megalith-pretrain --load. kUsage when the folder
/// holds checkpoints already. Holds one copy of the largest tensor.
OutputPlan plan_checkpoint(const Conversion& conversion);
void export_checkpoint(const Conversion& conversion, const std::string& root);

/// How Megatron's ranks cut a model, and which of its layers hold it.
struct MegatronLayout {
  int tensor = 1, pipeline = 1;
  bool engine = true;  // names of Transformer Engine's layers; else of Megatron's own ("local")
};
/// Writes DIR/release/mp_rank_…/model_optim_rng.pt for each rank, in Megatron's format "torch" with the names
/// of megatron-core, and the tracker; the tokenizer's files in DIR/tokenizer. kUsage when the model cannot be
/// cut so, or DIR is not new.
OutputPlan plan_megatron(const Conversion& conversion, const MegatronLayout& layout);
void export_megatron(const Conversion& conversion, const std::string& output, const MegatronLayout& layout);

/// Writes a .gguf file for llama.cpp: GPT-2, LLaMA and Qwen2. Matrices have the type of `type` (empty: as
/// they are stored); what llama.cpp wants in fp32 (norms, biases, positions) is fp32. The tokenizer stands in
/// it. `output` ends in .gguf, or is a folder for model.gguf.
OutputPlan plan_gguf(const Conversion& conversion, std::optional<Storage> type);
void export_gguf(const Conversion& conversion, const std::string& output, std::optional<Storage> type);

/// A plan as a table: name, source, shape, type, bytes, how it comes about.
std::string table_of(const OutputPlan& plan);
Json json_of(const OutputPlan& plan);

/// What stands in a checkpoint of any kind that can be read, a .safetensors or a .gguf file: its kind,
/// configuration, iteration and tensors.
Json inspect(const std::string& path, const SourceOptions& options = {});
std::string inspect_text(const Json& inspected);

}  // namespace megalith
