#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/convert/sources/megatron_source.h"
#include "libcore/options/fields.h"

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
  bool overwrite = false, dry_run = false, json = false;
  std::string options_file;  // not an option: the file of --config, which no output may replace

  template <class V>
  void fields(V&& v) {
    v("input", input,
      "Checkpoint of Megalith or Megatron-LM (the folder that training saved into, one iteration's, one "
      "rank's, or a .pt file), or Hugging Face folder. `inspect PATH` lists what is there and converts "
      "nothing.",
      positional(), required(), metavar("[inspect] PATH"), offers({"inspect"}));
    v("output", output, "Folder to write; for gguf also a file that ends in .gguf.", metavar("DIR"),
      default_text("of a .pt file as hf: beside it; else the input's path with -hf, -megatron, … after it"));
    v("to", to,
      "What to write: hf (a Hugging Face folder), megatron (Megatron's format torch), megalith (a checkpoint "
      "of weights) or gguf (for llama.cpp).",
      one_of({"hf", "megatron", "megalith", "gguf"}));
    v("dtype", dtype, "Type of the written parameters; q8_0 only with gguf.",
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
      "Maximum size of one weights file of a Hugging Face folder: 500MB, 5GB, 4GiB.");
    v("tokenizer", tokenizer,
      "Folder with the tokenizer's files, or the id of a model that was downloaded from the Hugging Face hub "
      "before, in place of the model's own.",
      metavar("DIR"));
    v("vocab-file", vocab_file,
      "vocab.json of a GPT-2 tokenizer, with --merge-file, in place of --tokenizer.", metavar("FILE"),
      alias({"vocab"}));
    v("merge-file", merge_file, "merges.txt of a GPT-2 tokenizer.", metavar("FILE"), alias({"merges-file"}));
    v("tokenizer-model", tokenizer_model,
      "A tokenizer's file, its folder or id, detected by content: tokenizer.json, vocab.json (with "
      "merges.txt), a SentencePiece model, tiktoken's ranks; in place of --tokenizer.",
      metavar("FILE"), alias({"tokenizer-name-or-path"}));
    v("vocab-size", vocab_size,
      "Ids of the tokenizer, without padding, for a Megatron checkpoint converted without --tokenizer.",
      between(0, 2147483647), default_text("from the tokenizer"));
    v("num-attention-heads", heads,
      "Attention heads, for an old Megatron release that was saved without args.", at_least(0),
      default_text("from the checkpoint"));
    v("crc", crc, "Compare the checksums in torch's files when they are read.");
    v("check", check,
      "Run the model before and after the conversion on a few tokens and print the largest difference of the "
      "logits.");
    v("overwrite", overwrite, "Replace what an earlier conversion wrote to the output.");
    v("dry-run", dry_run, "Print what would be written, tensor by tensor, and write nothing.");
    v("json", json, "Print the table of inspect or --dry-run as JSON.");
  }
  void validate(Problems&) const;
  SourceOptions source_options() const;
  bool inspects() const { return input.size() == 2; }
  const std::string& path() const { return input.back(); }
};

/// The number of bytes that a size means: "500MB" (10^6), "4GiB" (2^30), "12345". Nothing if `text` is not a
/// size.
std::optional<uint64_t> parse_size(std::string_view text);

}  // namespace megalith
