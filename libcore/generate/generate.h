#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/generate/sampling.h"
#include "libcore/model/stage.h"
#include "libcore/text/tokenizer.h"

namespace megalith {

enum class Ending {
  kLength,     // max_new_tokens
  kPositions,  // the model's last position
  kStopToken,
  kCaller,
};

struct Generated {
  std::vector<int32_t> tokens;  // the new ones, without the stop token
  Ending ending = Ending::kLength;
};

/// What a generator has done so far.
struct GenerationTotals {
  int64_t prompt_tokens = 0, new_tokens = 0;
  /// New tokens that needed a pass of their own, as the first one, which the prompt's pass gives, does not.
  int64_t later_tokens = 0;
  double prompt_seconds = 0, seconds = 0;  // of passes over prompts, and over new tokens
};

/// Keys and values that stand before every prompt, as prefix tuning trains them; they take positions, so a
/// prompt must leave room for them.
struct KvPrefix {
  int64_t tokens = 0;
  std::vector<float> values;  // [layers, 2 (k, v), groups, tokens, head]
};

/// Continues sequences of tokens with a whole model, placed on the stream's backend. The results of a
/// sequence are the same whatever else is in the batch: prompts are read one by one (in runs of at most
/// kPromptRows), and a pass over new tokens computes each row as if it were alone.
class Generator {
 public:
  static constexpr int64_t kPromptRows = 512;
  struct Limits {
    int64_t batch = 1;        // sequences at once, at most Project::kFewRows
    bool bf16_cache = false;  // keys and values in bf16 where the activations are fp32
    const KvPrefix* prefix = nullptr;
  };
  Generator(const Stage&, Stream&, const Limits&);
  ~Generator();

  /// Called with each new token as it comes; false ends its sequence.
  using OnToken = std::function<bool(size_t sequence, int32_t token)>;
  /// Called when a sequence has ended.
  using OnEnd = std::function<void(size_t sequence, const Generated&)>;
  struct Job {
    std::span<const std::vector<int32_t>> prompts;  // each with at least one token
    int64_t continuations = 1;  // of each prompt: sequences p * continuations and so on belong to prompt p
    SampleOptions sampling;
    std::vector<int32_t> stop_tokens = {};
    int64_t max_length = 0;  // of the prompt and the new tokens; 0: no limit
    OnToken on_token = {};
    OnEnd on_end = {};
  };
  /// Up to max_new_tokens of each sequence, in order. A prompt is read once, whatever its continuations.
  /// kUsage, before anything is computed, when a prompt alone is longer than the model's positions or leaves
  /// nothing of max_length; kInternal for a prompt without a token; warns when the positions end a sequence
  /// early. What the callbacks and the stream's backend throw goes through.
  std::vector<Generated> run(const Job&);

  const GenerationTotals& totals() const { return totals_; }

 private:
  struct Slot;
  struct State;
  static int64_t wanted_tokens(const Job&, int64_t given);
  /// The positions that can be read, with words for messages.
  struct End {
    int64_t positions;
    std::string words;
  };
  std::optional<End> end() const;  // nothing: there are any number
  int64_t room(int64_t prompt, int64_t wanted) const;
  /// Refuses prompts that leave no room before any is read, so that nothing is computed in vain; memory and a
  /// slot for each sequence at a time.
  void prepare(const Job&, size_t sequences);
  void begin(Slot&, const Job&, size_t sequence);
  /// Brings the keys and values of the prompt into the slot's cache and the logits after it into the state.
  void read_prompt(Slot& slot, const Job& job, size_t number);
  /// The token after these logits; whether the sequence goes on.
  bool take(Slot&, const Job&, std::span<float> logits, Generated&);
  void step(std::span<Slot* const> slots, const Job&, std::vector<Generated>&);

  const Stage& stage_;
  Stream& stream_;
  Limits limits_;
  GenerationTotals totals_;
  std::unique_ptr<State> state_;
};

/// A text and its continuation, up to the tokenizer's eod token, for the log of a training run; an empty
/// prompt begins after an eod. A run must not end over a sample: an Error becomes a text in brackets.
std::string sample_text(const Stage&, Stream&, const Tokenizer&, std::string_view prompt,
                        const SampleOptions&);

}  // namespace megalith
