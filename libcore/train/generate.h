#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/config/fields.h"
#include "libcore/model/stage.h"
#include "libcore/text/tokenizer.h"

namespace megalith {

/// How the next token is chosen. Order and meaning of the filters are those of transformers' generate():
/// temperature, then top-k, then top-p.
struct SampleOptions {
  int max_new_tokens = 50;
  double temperature = 0;  // 0: always the likeliest token
  int top_k = 0;           // 0: all
  double top_p = 1;
  int64_t seed = 1234;

  template <class V>
  void fields(V&& v) {
    v("max-new-tokens", max_new_tokens, "Most tokens to add.", at_least(1));
    v("temperature", temperature, "Divides the logits before sampling; 0: always the likeliest token.",
      at_least(0));
    v("top-k", top_k, "Sample from this many likeliest tokens; 0: from all.", at_least(0));
    v("top-p", top_p, "Sample from the likeliest tokens that together have this probability.", between(0, 1));
    v("seed", seed, "Of the sampling.", at_least(0));
  }
};

/// The next token, by the logits [V] of the last one. A pure function: `step` counts the tokens chosen before
/// and, with the seed, gives the random number. kData when no logit is a number.
int32_t choose_token(std::span<const float> logits, const SampleOptions&, int64_t step);

struct Generated {
  std::vector<int32_t> tokens;             // the new ones, without the stop token
  bool stopped = false;                    // by the stop token
  double prompt_seconds = 0, seconds = 0;  // of the pass over the prompt, and of all the others
};

/// Continues `prompt` (at least one token) until `stop`, max_new_tokens or the model's last position. The
/// stage must be a whole model, placed on the stream's backend. kUsage when the prompt alone is longer than
/// the model's positions.
Generated generate(const Stage&, Stream&, std::span<const int32_t> prompt, const SampleOptions&,
                   std::optional<int32_t> stop);

struct GeneratedText {
  std::string text;  // the prompt and its continuation
  int64_t prompt_tokens = 0;
  Generated generated;
};

/// The same for text, stopping at the tokenizer's eod token; an empty prompt begins after an eod.
GeneratedText generate_text(const Stage&, Stream&, const Tokenizer&, std::string_view prompt,
                            const SampleOptions&);

/// Text for the log of a training run, which must not end over a sample: an Error becomes a text in brackets.
std::string sample_text(const Stage&, Stream&, const Tokenizer&, std::string_view prompt,
                        const SampleOptions&);

}  // namespace megalith
