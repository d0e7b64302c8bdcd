#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/generate/sampling.h"
#include "libcore/generate/search/beam_search.h"
#include "libcore/model/stage.h"

namespace megalith {

enum class Ending {
  kLength,     // the sequence has max_new_tokens new tokens
  kPositions,  // the model has no further positions
  kStopToken,
  kCaller,
};

struct Generated {
  std::vector<int32_t> tokens;  // the new tokens, without the stop token
  Ending ending = Ending::kLength;

  template <class V>
  void members(V&& visit) {  // see parallel/exchange.h
    visit(tokens, ending);
  }
};

/// What a generator has done so far.
struct GenerationTotals {
  int64_t prompt_tokens = 0, new_tokens = 0;
  /// Number of new tokens that needed a pass of their own: all but the first token of each sequence, which
  /// the prompt's pass gives.
  int64_t later_tokens = 0;
  double prompt_seconds = 0, seconds = 0;  // seconds of passes over prompts, and over new tokens
};

/// The end of the positions that a model can read, and the reason for it as a text for messages.
struct LastPosition {
  int64_t positions;
  std::string words;
};
/// Nothing: there is no limit, since the model has no position embeddings. On the CPU a sliding window also
/// ends the positions, except in fp32.
std::optional<LastPosition> last_position(const ModelConfig&, DType, std::string_view device);
inline std::optional<LastPosition> last_position(const Stage& stage, const Backend& backend) {
  return last_position(stage.config(), stage.dtype(), backend.name());
}

/// Keys and values that precede every prompt, as prefix tuning trains them. They take positions of the model,
/// which a prompt cannot use.
struct KvPrefix {
  int64_t tokens = 0;
  std::vector<float> values;  // [layers, 2 (k, v), groups of this rank, tokens, head]
};
/// The number of positions that a prefix takes; 0 without one.
inline int64_t positions_of(const KvPrefix* prefix) {
  return prefix ? prefix->tokens : 0;
}

/// The maximum number of sequences at once on any device, which is that on a GPU. The CPU takes
/// Project::kFewRows, as many as it computes as if each were alone.
constexpr int64_t kMostSequences = 1024;
int64_t most_sequences(const Backend&);

/// Continues sequences of tokens. The model must be whole and placed on the stream's backend. Prompts are
/// read one by one (at most kPromptRows tokens at a time); on the CPU those that begin together share passes
/// (most_shared_tokens()). There the result for a sequence does not depend on the rest of the batch if the
/// matrices are fp32 or fp16: a pass of few rows computes each as if it were alone. With narrower matrices
/// prompts share longer passes, where logits differ by rounding, as they do on a GPU.
class Generator {
 public:
  static constexpr int64_t kPromptRows = 512;
  struct Limits {
    int64_t batch = 1;        // number of sequences at once; at most most_sequences()
    bool bf16_cache = false;  // stores keys and values in bf16 although the activations are fp32
    const KvPrefix* prefix = nullptr;
    /// The ranks that share the model's matrices, as the stage's split says; null: this rank has all of them.
    /// Every rank runs the same jobs. The first one chooses the tokens and alone makes the calls back; the
    /// others follow it. It must outlive the generator.
    Communicator* ranks = nullptr;
  };
  /// Throws kUsage: more sequences than the backend computes at once.
  Generator(const Stage&, Stream&, const Limits&);
  ~Generator();

  /// Called with each new token as soon as it is chosen. Returns false to end the token's sequence.
  using OnToken = std::function<bool(size_t sequence, int32_t token)>;
  /// Called when a sequence has ended.
  using OnEnd = std::function<void(size_t sequence, const Generated&)>;
  struct Job {
    std::span<const std::vector<int32_t>> prompts;  // prompts with at least one token each
    /// Continuations of each prompt; sequences p * continuations to (p + 1) * continuations - 1 belong to
    /// prompt p.
    int64_t continuations = 1;
    SampleOptions sampling;
    /// With several beams, the prompts are continued one after the other, and the continuations of a prompt
    /// are the best texts of its search: at most as many as there are beams, which need a batch of that size.
    /// on_token is then called when the search has ended.
    BeamOptions beams = {};
    std::vector<int32_t> stop_tokens = {};
    int64_t max_length = 0;  // maximum for prompt and new tokens together; 0: no limit
    int64_t first_draw = 0;  // the number of the first sequence in a Draw
    /// For one prompt with one continuation: the beginning that the prompt has in common with the sequence
    /// that ran last is not read again, as it is still in the cache.
    bool continues = false;
    OnToken on_token = {};
    OnEnd on_end = {};
  };
  /// Generates up to max_new_tokens tokens for each sequence. Returns the results in the order of the
  /// sequences, and nothing on ranks other than the first. A prompt is read once, however many continuations
  /// it has. Throws what check() throws, before anything is computed, and whatever the callbacks and the
  /// stream's backend throw. Warns if the positions end a sequence early.
  std::vector<Generated> run(const Job&);

  /// Throws kUsage, as run() does, if a prompt alone is longer than the model's positions or leaves no new
  /// token within max_length; kInternal for a prompt without a token.
  void check(const Job&) const;

  const GenerationTotals& totals() const { return totals_; }
  /// The longest prompt that the model's positions allow; nothing: there is no limit.
  std::optional<int64_t> longest_prompt() const;

 private:
  struct Slot;
  struct State;
  static int64_t wanted_tokens(const Job&, int64_t given);
  int64_t room(int64_t prompt, int64_t wanted) const;
  /// Prepares a job: checks its prompts, and allocates memory and a slot for each concurrent sequence.
  void prepare(const Job&, size_t sequences);
  void begin(Slot&, const Job&, size_t sequence);
  /// Notes what the slot is to continue, and makes room for it.
  void place(Slot&, const Job&, size_t sequence);
  /// Begins sequences from `next` on in these slots: one, or as many as read their prompts in one pass.
  /// Returns the slots that it took; the state has their logits, in this order.
  std::span<Slot* const> begin_some(std::span<Slot* const> free, const Job&, size_t next);
  /// The number of sequences from `next` on, at most `most`, whose prompts are read in one pass.
  size_t read_together(const Job&, size_t next, size_t most) const;
  /// Puts the keys and values of the prompts of these slots into their caches, in one pass.
  void read_prompts(std::span<Slot* const> slots);
  /// The context of a pass.
  Ctx context();
  /// The number of the prompt's tokens that need not be read, because the slot's cache begins with them. At
  /// least the last token is read, for the logits after it.
  int64_t tokens_kept(const Slot& slot, const std::vector<int32_t>& prompt) const;
  /// Makes room in the slot's cache for `capacity` positions. Positions that are kept stay in it.
  void make_room(Slot& slot, int64_t capacity);
  /// Puts the prompt's keys and values, without those that are kept, into the slot's cache, and the logits
  /// after the prompt into the state.
  void read_prompt(Slot& slot, const Job& job, size_t number);
  struct Choice;
  /// Whether this rank chooses.
  bool leads() const { return !limits_.ranks || limits_.ranks->rank() == 0; }
  /// What the first rank has, on all ranks.
  template <class T>
  T of_first(T mine);
  /// Chooses the next token from these logits.
  Choice choose(const Slot&, const Job&, std::span<float> logits);
  /// The next token of each slot, from its row of the state's logits: what the first rank chooses. Valid
  /// until the next call.
  const std::vector<Choice>& choices(std::span<Slot* const> slots, const Job&);
  /// Returns whether the sequence continues.
  bool take(Slot&, const Choice&, Generated&);
  /// Computes the logits after the last token of each slot, into the state.
  void pass(std::span<Slot* const> slots);
  void step(std::span<Slot* const> slots, const Job&, std::vector<Generated>&);
  std::vector<Generated> run_beams(const Job&);
  BeamSearch search_beams(const Job&, size_t prompt);
  /// Extends the beams from the state's logits, as the first rank does. Returns whether the search goes on.
  bool extend(BeamSearch&);
  /// Ends the continuations of a prompt, which are the best texts of its search.
  void tell_best(const Job&, const BeamSearch&, std::vector<Generated>&);
  /// Gives each running beam a cache that holds the keys and values of its parent.
  void follow_parents(const BeamSearch&, std::vector<Slot*>& slots);

  const Stage& stage_;
  Stream& stream_;
  Limits limits_;
  GenerationTotals totals_;
  std::unique_ptr<State> state_;
};

}  // namespace megalith
