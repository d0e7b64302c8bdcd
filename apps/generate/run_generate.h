#pragma once

#include <string>

#include "libcore/config/fields.h"
#include "libcore/train/generate.h"

namespace megalith {

struct GenerateConfig {
  std::string model, prompt, device = "cpu";

  template <class V>
  void fields(V&& v) {
    v("model", model,
      "What to run: a folder that training saved into, one of its iterations, or a Hugging Face folder.",
      required(), metavar("DIR"));
    v("prompt", prompt, "The text to continue.", required(), metavar("TEXT"));
    v("device", device,
      "Where the model runs; cuda: the first device; gpu: that, or the CPU where none answers.",
      one_of({"cpu", "cuda", "gpu"}));
  }
};

/// Loads the model and prints the prompt and its continuation on stdout; speed goes to the log. Parameters
/// stored as bf16 are used as bf16, all others as fp32. kUsage when the model came without a tokenizer.
void run_generate(const GenerateConfig&, const SampleOptions&);

}  // namespace megalith
