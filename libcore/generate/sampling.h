#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/options/fields.h"

namespace megalith {

/// How the next token is chosen. The order and the meaning of the steps are those of transformers'
/// generate(): repetition penalty, no repeated n-grams, temperature, top-k, top-p, min-p, typical-p.
struct SampleOptions {
  /// The default of max_new_tokens in a conversation: an answer should not end in the middle.
  static constexpr int kAnswerTokens = 1024;
  int max_new_tokens = 50;
  double temperature = 0;  // 0: always the likeliest token
  int top_k = 0;           // 0: all tokens
  double top_p = 1;
  double min_p = 0, typical_p = 1;
  double repetition_penalty = 1;
  int no_repeat_ngram = 0;  // 0: any n-gram may occur again
  int64_t seed = 1234;

  template <class V>
  void fields(V&& v) {
    v("max-new-tokens", max_new_tokens, "Maximum number of tokens to add.", at_least(1), alias({"-n"}),
      default_text(concat("50; ", kAnswerTokens, " in a conversation")));
    v("temperature", temperature, "Divides the logits before sampling; 0: always the likeliest token.",
      at_least(0), default_text("0"));
    v("top-k", top_k, "Sample from this many likeliest tokens; 0: from all.", at_least(0), default_text("0"));
    v("top-p", top_p, "Sample from the likeliest tokens that together have this probability.", between(0, 1));
    v("min-p", min_p, "Sample from tokens that are at least this many times as likely as the likeliest one.",
      between(0, 1), default_text("0"));
    v("typical-p", typical_p,
      "Sample from the tokens nearest to the expected information that together have this probability.",
      between(0, 1));
    v("no-repeat-ngram-size", no_repeat_ngram,
      "No sequence of this many tokens occurs twice, the prompt included; 0: any may.", at_least(0),
      default_text("0"));
    v("repetition-penalty", repetition_penalty,
      "Divides the positive logits of tokens that occurred before, in the prompt too, and multiplies the "
      "negative ones; 1: none.",
      positive());
    v("seed", seed, "The seed of the sampling.", at_least(0));
  }
};

/// Identifies a random number by the token for which it is drawn. The number depends only on this and the
/// seed, so a text does not depend on what else is generated.
struct Draw {
  int64_t sequence = 0, step = 0;
};

/// Replaces logits by their log-probabilities. kData if one is NaN, or the largest infinite.
void log_softmax(std::span<float> logits);

/// Chooses tokens according to the options. Holds scratch memory, so each thread needs its own Sampler.
class Sampler {
 public:
  explicit Sampler(const SampleOptions& options) : options_(options) {}

  struct Candidate {
    int32_t token;
    double weight;  // its probability times a factor that is common to all
  };
  /// Returns the next token. `logits`: [V], those after the last token; they are overwritten. `before`: the
  /// prompt's tokens and the tokens chosen since. kData if a logit is NaN.
  int32_t choose(std::span<float> logits, std::span<const int32_t> before, const Draw& draw);
  /// The tokens that may be drawn. Valid until the next call. Not for temperature 0.
  std::span<const Candidate> candidates(std::span<float> logits, std::span<const int32_t> before);
  /// Applies repetition_penalty and no_repeat_ngram to logits or, as beam search does, to log-probabilities.
  void weigh_by_history(std::span<float> logits, std::span<const int32_t> before);

 private:
  void penalise(std::span<float> logits, std::span<const int32_t> before);
  void forbid_ngrams(std::span<float> logits, std::span<const int32_t> before) const;
  void keep_top_k(std::span<const float> logits);
  void keep_top_p();
  void keep_min_p();
  void keep_typical();

  /// A candidate, and how far its information is from the expected one.
  struct Ranked {
    double distance;
    Candidate candidate;
  };

  SampleOptions options_;
  std::vector<Candidate> candidates_;
  std::vector<Ranked> ranked_;
  std::vector<float> sorted_;
  std::vector<bool> seen_;
};

}  // namespace megalith
