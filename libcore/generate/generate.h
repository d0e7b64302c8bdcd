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
  /// New tokens that needed a pass of their own: all but the first of each sequence, which the prompt's pass
  /// gives.
  int64_t later_tokens = 0;
  double prompt_seconds = 0, seconds = 0;  // of passes over prompts, and over new tokens
};

/// Keys and values before every prompt, as prefix tuning trains them. They take positions, so a prompt must
/// leave room for them.
struct KvPrefix {
  int64_t tokens = 0;
  std::vector<float> values;  // [layers, 2 (k, v), groups, tokens, head]
};

/// Continues sequences of tokens. The model is whole and placed on the stream's backend. The result for a
/// sequence does not depend on the rest of the batch: prompts are read one by one (in runs of at most
/// kPromptRows), and a pass over new tokens computes each row as if it were alone.
class Generator {
 public:
  static constexpr int64_t kPromptRows = 512;
  struct Limits {
    int64_t batch = 1;        // sequences at once; maximum Project::kFewRows
    bool bf16_cache = false;  // keys and values in bf16 although the activations are fp32
    const KvPrefix* prefix = nullptr;
  };
  Generator(const Stage&, Stream&, const Limits&);
  ~Generator();

  /// Called with each new token as it is chosen; returns false to end its sequence.
  using OnToken = std::function<bool(size_t sequence, int32_t token)>;
  /// Called when a sequence has ended.
  using OnEnd = std::function<void(size_t sequence, const Generated&)>;
  struct Job {
    std::span<const std::vector<int32_t>> prompts;  // each with at least one token
    int64_t continuations =
        1;  // of each prompt; sequences p * continuations to (p + 1) * continuations - 1 belong to prompt p
    SampleOptions sampling;
    std::vector<int32_t> stop_tokens = {};
    int64_t max_length = 0;  // of the prompt and the new tokens; 0: no limit
    OnToken on_token = {};
    OnEnd on_end = {};
  };
  /// Up to max_new_tokens for each sequence, in the order of the sequences. A prompt is read once, however
  /// many continuations it has. kUsage, before anything is computed, if a prompt alone is longer than the
  /// model's positions or leaves no new token within max_length; kInternal for a prompt without a token;
  /// warns if the positions end a sequence early. Passes on what the callbacks and the stream's backend
  /// throw.
  std::vector<Generated> run(const Job&);

  const GenerationTotals& totals() const { return totals_; }

 private:
  struct Slot;
  struct State;
  static int64_t wanted_tokens(const Job&, int64_t given);
  /// How many positions can be read, and what limits them, in words for messages.
  struct End {
    int64_t positions;
    std::string words;
  };
  std::optional<End> end() const;  // nothing: there is no limit
  int64_t room(int64_t prompt, int64_t wanted) const;
  /// Refuses prompts that leave no room before any prompt is read, so that no work is wasted; allocates
  /// memory and a slot for each concurrent sequence.
  void prepare(const Job&, size_t sequences);
  void begin(Slot&, const Job&, size_t sequence);
  /// Brings the prompt's keys and values into the slot's cache, and the logits after it into the state.
  void read_prompt(Slot& slot, const Job& job, size_t number);
  /// Chooses the token after these logits; returns whether the sequence continues.
  bool take(Slot&, const Job&, std::span<float> logits, Generated&);
  void step(std::span<Slot* const> slots, const Job&, std::vector<Generated>&);

  const Stage& stage_;
  Stream& stream_;
  Limits limits_;
  GenerationTotals totals_;
  std::unique_ptr<State> state_;
};

/// A text and its continuation, up to the tokenizer's eod token, for the log of a training run; an empty
/// prompt is replaced by an eod token. A sample must not end a run: if an Error occurs, its message in
/// brackets is returned.
std::string sample_text(const Stage&, Stream&, const Tokenizer&, std::string_view prompt,
                        const SampleOptions&);

}  // namespace megalith
