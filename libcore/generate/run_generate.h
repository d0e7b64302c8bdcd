#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "libcore/config/parallel_config.h"
#include "libcore/generate/device_options.h"
#include "libcore/generate/generate.h"

namespace megalith {

enum class CacheType { kFp32, kBf16 };
inline std::vector<EnumName<CacheType>> enum_names(CacheType) {
  return {{"fp32", CacheType::kFp32}, {"bf16", CacheType::kBf16}};
}

/// Options of megalith-generate, a struct for each group of --help.
struct ModelOptions {
  std::string model, adapter;

  template <class V>
  void fields(V&& v) {
    v("model", model,
      "What to run: a folder that training saved into, one of its iterations, a Hugging Face folder, or the "
      "id of a model that was downloaded from its hub before.",
      required(), metavar("DIR"), alias({"load", "load_checkpoint", "checkpoint_name_or_path"}));
    v("adapter", adapter, "PEFT adapter to run the model with: LoRA or prefix tuning.", metavar("DIR"));
  }
};

struct PromptOptions {
  std::vector<std::string> prompts;
  std::string prompts_file;
  std::optional<std::string> chat;  // a file; empty: a conversation, whose questions come from stdin
  int sequences = 1;

  bool conversation() const { return chat && chat->empty(); }

  template <class V>
  void fields(V&& v) {
    v("prompt", prompts, "Text to continue; may be given several times. Without any prompt, stdin is read.",
      metavar("TEXT"), alias({"-p", "predict_data", "input_data"}));
    v("prompts-file", prompts_file,
      "Prompts, one a line; of a .jsonl file the member \"prompt\" of each line. \"-\": stdin.",
      metavar("FILE"));
    v("chat", chat,
      "A conversation in JSON, [{\"role\": …, \"content\": …}, …]; the model's chat template turns it "
      "into the prompt. \"-\": stdin. Without FILE: a conversation in the terminal; if stdin is not one, "
      "its lines are the questions.",
      metavar("[FILE]"));
    v("num-return-sequences", sequences,
      "Continuations of each prompt; several need --temperature above 0, or at least as many --num-beams.",
      at_least(1));
  }
  void validate(Problems&) const;
};

struct EndOptions {
  std::vector<std::string> stop;
  std::optional<int> eos;
  bool ignore_eos = false;
  int max_length = 0;

  template <class V>
  void fields(V&& v) {
    v("stop", stop, "Text that ends a continuation and is left out; may be given several times.",
      metavar("TEXT"));
    v("eos-token-id", eos, "Id of the token that ends a text, in place of the model's own.", at_least(0));
    v("max-length", max_length,
      "Maximum number of tokens of a prompt and its continuation; 0: no limit but --max-new-tokens.",
      at_least(0), alias({"max_decode_length"}));
    v("ignore-eos", ignore_eos, "Continue after the token that ends a text, up to --max-new-tokens.");
  }
  void validate(Problems&) const;
};

struct OutputOptions {
  bool json = false, echo = true;

  template <class V>
  void fields(V&& v) {
    v("json", json,
      "Print a JSON object a continuation: index, prompt, text, tokens, prompt_tokens, finish_reason.");
    v("echo", echo, "Print the prompt before its continuation (never with --json or --chat).");
  }
};

static_assert(Project::kFewRows == 16, "as the help of --batch-size says");
struct RunOptions : DeviceOptions {
  int batch = 1;
  bool int8 = false;
  CacheType cache = CacheType::kFp32;

  template <class V>
  void fields(V&& v) {
    v("batch-size", batch,
      "Sequences generated at once, on the CPU up to 16. With weights of fp32 or fp16 each gets the result "
      "that it would get alone; with others, and on a GPU, the batch changes logits by rounding.",
      between(1, kMostSequences));
    v("int8", int8, "Round the matrices to 8 bits with a scale a row while loading; CPU only.");
    v("kv-cache", cache, "Type of the kept keys and values.");
    DeviceOptions::fields(v);
  }
};

struct GenerateConfig {
  ModelOptions model;
  PromptOptions prompt;
  SampleOptions sampling;
  BeamOptions beams;
  EndOptions end;
  OutputOptions output;
  RunOptions run;
};

/// The ranks that generate together, as one of them sees them. Tensor ranks share the model's matrices; each
/// group of them continues a share of the prompts. All must outlive the run.
struct GenerateRanks {
  const ParallelConfig& parallel;  // complete: finish() and validate() were called
  Communicator& world;             // of the hosts of all ranks, tensor ranks next to each other
  Communicator& tensor;            // takes tensors of `backend`
  Backend& backend;                // of this rank's device

  int group() const { return world.rank() / parallel.tensor; }
};

/// Loads the model and prints the continuations to stdout; speed and memory go to the log. kUsage if the
/// model has no tokenizer, if this device or model does not support an option, or if it cannot be divided
/// over ranks; kData and kNoInput as thrown by ModelSource, Adapter and read_prompts(). If stdout cannot be
/// written, throws what write_stdout() throws.
void run_generate(const GenerateConfig&);
/// The same in ranks, which all call it with the same options; not for a conversation. The first one reads
/// the prompts and prints: in each round the texts of its own group as they come, then those of the others.
/// If nobody reads them any more, it does not throw ReaderGone: all ranks end their texts and return false.
bool run_generate(const GenerateConfig&, const GenerateRanks&);

}  // namespace megalith
