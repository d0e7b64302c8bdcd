#include "libcore/generate/generate.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/generate/pass_memory.h"
#include "libcore/parallel/exchange.h"

namespace megalith {

int64_t most_sequences(const Backend& backend) {
  return std::string_view(backend.name()) == "cpu" ? Project::kFewRows : kMostSequences;
}

std::optional<LastPosition> last_position(const ModelConfig& config, DType dtype, std::string_view device) {
  const bool has_last = config.position != PositionEmbedding::kNone;
  const bool windows = dtype == DType::kF32 || device != "cpu";
  const int window = config.sliding_window;
  if (window > 0 && !windows && (!has_last || window < config.max_positions))
    return LastPosition{
        window, concat("the model a window of ", window, " positions, which the CPU exceeds only in fp32")};
  if (!has_last) return std::nullopt;
  return LastPosition{config.max_positions, concat("the model ", config.max_positions, " positions")};
}

/// A sequence in progress.
struct Generator::Slot {
  std::optional<KvCache> cache;
  std::optional<size_t> prompt;  // index of the prompt whose keys and values the cache begins with
  size_t sequence = 0;
  int64_t kept = 0;                // number of tokens of the prompt that were in the cache before
  int64_t given = 0, max_new = 0;  // number of tokens of the prompt, and maximum number of new tokens
  bool cut_short = false;          // whether the model's positions end the sequence
  std::vector<int32_t> tokens;     // the prompt and the tokens chosen so far
};

/// The next token of a sequence, and what follows it.
struct Generator::Choice {
  enum class Then { kGoOn, kStopToken, kCaller };  // kStopToken: the token is one, and no part of the text
  int32_t token = 0;
  Then then = Then::kGoOn;
};

struct Generator::State {
  State(const Stage& stage, Stream& stream, const Limits& limits, int64_t prompt)
      : prompt_rows(prompt),
        scratch(make_arena(stream.backend(), "scratch", scratch_bytes(stage, limits, prompt))),
        inputs(make_arena(stream.backend(), "tokens",
                          static_cast<size_t>(std::max({prompt, limits.batch, most_shared_tokens(stage)})) *
                                  sizeof(int32_t) +
                              Arena::kAlignment)),
        logits(static_cast<size_t>(stage.config().vocab_size * limits.batch)),
        region(limits.ranks ? *limits.ranks : *alone) {}

  int64_t prompt_rows;
  std::unique_ptr<Communicator> alone = make_self_comm();
  Arena scratch, inputs;
  std::vector<float> logits;  // [sequences, V]
  Region region;
  /// [V]: the logits after the prompt that was read last. They are kept so that further continuations of this
  /// prompt need not read it again.
  std::vector<float> after_prompt;
  std::vector<int32_t> ids;
  std::vector<KvCache*> caches;
  std::vector<Choice> choices;  // of the last step
  std::vector<Slot> slots;
  std::optional<Sampler> sampler;
};

Generator::Generator(const Stage& stage, Stream& stream, const Limits& limits)
    : stage_(stage), stream_(stream), limits_(limits) {
  const int64_t most = most_sequences(stream.backend());
  if (limits.batch > most)
    fail(ErrorKind::kUsage, "--batch-size ", limits.batch, ": the CPU computes up to ", most,
         " sequences at once as if each were alone; give ", most, ", or --device cuda");
}
Generator::~Generator() = default;

std::optional<int64_t> Generator::longest_prompt() const {
  const std::optional<LastPosition> last = last_position(stage_, stream_.backend());
  if (!last) return std::nullopt;
  return last->positions - positions_of(limits_.prefix);
}

int64_t Generator::tokens_kept(const Slot& slot, const std::vector<int32_t>& prompt) const {
  if (!slot.cache) return 0;
  const int64_t prefix = positions_of(limits_.prefix);
  const int64_t most = std::min(slot.cache->past() - prefix, static_cast<int64_t>(prompt.size()) - 1);
  const auto last = slot.tokens.begin() + std::max<int64_t>(most, 0);
  return std::mismatch(slot.tokens.begin(), last, prompt.begin()).first - slot.tokens.begin();
}

void Generator::make_room(Slot& slot, int64_t capacity) {
  if (slot.cache && slot.cache->capacity() >= capacity) return;
  std::optional<KvCache> before = std::move(slot.cache);
  if (slot.kept > 0) {  // a sequence that grew once will grow again
    const std::optional<LastPosition> last = last_position(stage_, stream_.backend());
    capacity = std::max(capacity, std::min(2 * before->capacity(), last ? last->positions : INT64_MAX));
  }
  const bool narrow = limits_.bf16_cache && stage_.dtype() == DType::kF32;
  slot.cache.emplace(
      stream_.backend(), stage_.config(), stage_.layers(), split_of(limits_),
      KvCache::Size{.batch = 1, .capacity = capacity, .dtype = narrow ? DType::kBf16 : stage_.dtype()});
  if (slot.kept > 0) {
    slot.cache->copy(stream_, *before, positions_of(limits_.prefix) + slot.kept);
    stream_.synchronize();
  }
  slot.prompt.reset();
}

/// The maximum number of new tokens. The last new token needs no position, because nothing is read after it.
int64_t Generator::room(int64_t prompt, int64_t wanted) const {
  const std::optional<LastPosition> last = last_position(stage_, stream_.backend());
  if (!last) return wanted;
  const int64_t prefix = positions_of(limits_.prefix), left = last->positions - prefix;
  if (prompt > left)
    fail(ErrorKind::kUsage, "the prompt has ", prompt, " tokens, ", last->words,
         prefix > 0 ? concat(", of which the prefix takes ", prefix) : std::string(), "; shorten the prompt");
  return std::min(wanted, left - prompt + 1);
}

/// The number of new tokens for a prompt of `given` tokens, according to the options.
int64_t Generator::wanted_tokens(const Job& job, int64_t given) {
  if (job.max_length == 0) return job.sampling.max_new_tokens;
  if (given >= job.max_length)
    fail(ErrorKind::kUsage, "the prompt has ", given, " tokens, but with its continuation it may have ",
         job.max_length, "; shorten the prompt or raise the limit");
  return std::min<int64_t>(job.sampling.max_new_tokens, job.max_length - given);
}

Ctx Generator::context() {
  return {.compute = stream_, .tp = state_->region, .scratch = state_->scratch, .training = false};
}

void Generator::place(Slot& slot, const Job& job, size_t sequence) {
  const size_t number = sequence / static_cast<size_t>(job.continuations);
  const std::vector<int32_t>& prompt = job.prompts[number];
  const int64_t prefix = positions_of(limits_.prefix);
  slot.sequence = sequence;
  slot.given = static_cast<int64_t>(prompt.size());
  const int64_t wanted = wanted_tokens(job, slot.given);
  slot.max_new = room(slot.given, wanted);
  slot.cut_short = slot.max_new < wanted;
  if (slot.cut_short)
    warn("only ", slot.max_new, " of ", wanted, " new tokens fit: the prompt has ", slot.given, " tokens, ",
         last_position(stage_, stream_.backend())->words);
  slot.kept = job.continues ? tokens_kept(slot, prompt) : 0;
  slot.tokens = prompt;
  slot.tokens.reserve(static_cast<size_t>(slot.given + slot.max_new));
  make_room(slot, prefix + slot.given + slot.max_new - 1);
}

void Generator::begin(Slot& slot, const Job& job, size_t sequence) {
  place(slot, job, sequence);
  const size_t number = sequence / static_cast<size_t>(job.continuations);
  const int64_t prefix = positions_of(limits_.prefix);
  if (slot.prompt == number) {
    slot.cache->truncate(prefix + slot.given);
  } else {
    const auto& slots = state_->slots;
    const auto read =
        std::find_if(slots.begin(), slots.end(), [&](const Slot& s) { return s.prompt == number; });
    if (read == slots.end()) return read_prompt(slot, job, number);
    slot.cache->copy(stream_, *read->cache, prefix + slot.given);
    slot.prompt = number;
  }
  std::copy(state_->after_prompt.begin(), state_->after_prompt.end(), state_->logits.begin());
}

void Generator::read_prompt(Slot& slot, const Job& job, size_t number) {
  const std::vector<int32_t>& prompt = job.prompts[number];
  const int64_t prefix = positions_of(limits_.prefix);
  slot.prompt.reset();
  slot.cache->truncate(slot.kept > 0 ? prefix + slot.kept : 0);
  if (limits_.prefix && slot.kept == 0) slot.cache->put(stream_, prefix, limits_.prefix->values);
  const auto start = std::chrono::steady_clock::now();
  for (int64_t at = slot.kept; at < slot.given;) {
    const int64_t rows = std::min(state_->prompt_rows, slot.given - at);
    const ArenaScope inputs_scope(state_->inputs), scratch_scope(state_->scratch);
    const View ids = state_->inputs.make(DType::kI32, {rows, 1}, "tokens");
    stream_.from_host(ids, prompt.data() + at);
    const View logits = stage_.logits(context(), ids, 1, *slot.cache);
    at += rows;
    if (at == slot.given) stream_.to_host(state_->logits.data(), logits);
  }
  slot.prompt = number;
  if (job.continuations > 1) {
    const auto vocabulary = static_cast<std::ptrdiff_t>(stage_.config().vocab_size);
    state_->after_prompt.assign(state_->logits.begin(), state_->logits.begin() + vocabulary);
  }
  totals_.prompt_seconds += seconds_since(start);
  totals_.prompt_tokens += slot.given - slot.kept;
}

size_t Generator::read_together(const Job& job, size_t next, size_t most) const {
  if (job.continuations > 1 || std::string_view(stream_.backend().name()) != "cpu") return 1;
  size_t count = 0, tokens = 0;
  while (count < most && next + count < job.prompts.size()) {
    tokens += job.prompts[next + count].size();
    if (tokens > static_cast<size_t>(most_shared_tokens(stage_))) break;
    ++count;
  }
  return std::max<size_t>(count, 1);
}

std::span<Generator::Slot* const> Generator::begin_some(std::span<Slot* const> free, const Job& job,
                                                        size_t next) {
  const std::span<Slot* const> slots = free.last(read_together(job, next, free.size()));
  if (slots.size() == 1) {
    begin(*slots.front(), job, next);
    return slots;
  }
  for (Slot* const slot : slots) place(*slot, job, next++);
  read_prompts(slots);
  return slots;
}

void Generator::read_prompts(std::span<Slot* const> slots) {
  State& state = *state_;
  const int64_t prefix = positions_of(limits_.prefix);
  std::vector<int64_t> rows;
  state.ids.clear();
  state.caches.clear();
  for (Slot* const slot : slots) {
    slot->prompt.reset();
    slot->cache->truncate(0);
    if (limits_.prefix) slot->cache->put(stream_, prefix, limits_.prefix->values);
    state.ids.insert(state.ids.end(), slot->tokens.begin(), slot->tokens.end());
    state.caches.push_back(&*slot->cache);
    rows.push_back(slot->given);
  }
  const auto start = std::chrono::steady_clock::now();
  const auto tokens = static_cast<int64_t>(state.ids.size());
  const ArenaScope inputs_scope(state.inputs), scratch_scope(state.scratch);
  const View ids = state.inputs.make(DType::kI32, {tokens, 1}, "tokens");
  stream_.from_host(ids, state.ids.data());
  stream_.to_host(state.logits.data(), stage_.last_logits(context(), ids, state.caches, rows));
  totals_.prompt_seconds += seconds_since(start);
  totals_.prompt_tokens += tokens;
}

template <class T>
T Generator::of_first(T mine) {
  if (!limits_.ranks) return mine;
  stream_.synchronize();  // as exchange() wants it
  return rank0_value(*limits_.ranks, mine);
}

Generator::Choice Generator::choose(const Slot& slot, const Job& job, std::span<float> logits) {
  const Draw draw{job.first_draw + static_cast<int64_t>(slot.sequence),
                  static_cast<int64_t>(slot.tokens.size()) - slot.given};
  const int32_t token = state_->sampler->choose(logits, slot.tokens, draw);
  const auto& stops = job.stop_tokens;
  if (std::find(stops.begin(), stops.end(), token) != stops.end()) return {token, Choice::Then::kStopToken};
  const bool goes_on = !job.on_token || job.on_token(slot.sequence, token);
  return {token, goes_on ? Choice::Then::kGoOn : Choice::Then::kCaller};
}

// Each rank has the same logits. But processors of two kinds may round the numbers that are drawn by in two
// ways, and a choice that differed would hang the ranks.
const std::vector<Generator::Choice>& Generator::choices(std::span<Slot* const> slots, const Job& job) {
  const auto vocabulary = static_cast<size_t>(stage_.config().vocab_size);
  std::vector<Choice>& out = state_->choices;
  out.clear();
  for (size_t i = 0; leads() && i < slots.size(); ++i)
    out.push_back(choose(*slots[i], job, {state_->logits.data() + i * vocabulary, vocabulary}));
  out = of_first(std::move(out));
  return out;
}

bool Generator::take(Slot& slot, const Choice& choice, Generated& out) {
  if (choice.then == Choice::Then::kStopToken) {
    out.ending = Ending::kStopToken;
    return false;
  }
  out.tokens.push_back(choice.token);
  slot.tokens.push_back(choice.token);
  ++totals_.new_tokens;
  if (choice.then == Choice::Then::kCaller) {
    out.ending = Ending::kCaller;
    return false;
  }
  out.ending = slot.cut_short ? Ending::kPositions : Ending::kLength;
  return static_cast<int64_t>(out.tokens.size()) < slot.max_new;
}

void Generator::pass(std::span<Slot* const> slots) {
  State& state = *state_;
  state.ids.clear();
  state.caches.clear();
  for (Slot* const slot : slots) {
    state.ids.push_back(slot->tokens.back());
    state.caches.push_back(&*slot->cache);
  }
  const ArenaScope inputs_scope(state.inputs), scratch_scope(state.scratch);
  const View ids = state.inputs.make(DType::kI32, {1, static_cast<int64_t>(slots.size())}, "tokens");
  stream_.from_host(ids, state.ids.data());
  const View logits = stage_.next_logits(context(), ids, state.caches);
  stream_.to_host(state.logits.data(), logits);
}

void Generator::step(std::span<Slot* const> slots, const Job& job, std::vector<Generated>& out) {
  const auto start = std::chrono::steady_clock::now();
  pass(slots);
  const std::vector<Choice>& chosen = choices(slots, job);
  for (size_t i = 0; i < slots.size(); ++i) {
    Slot& slot = *slots[i];
    const size_t before = out[slot.sequence].tokens.size();
    if (!take(slot, chosen[i], out[slot.sequence])) slot.max_new = 0;
    totals_.later_tokens += static_cast<int64_t>(out[slot.sequence].tokens.size() - before);
  }
  totals_.seconds += seconds_since(start);
}

void Generator::check(const Job& job) const {
  for (const std::vector<int32_t>& prompt : job.prompts) {
    if (prompt.empty()) fail(ErrorKind::kInternal, "generation needs at least one token");
    const auto given = static_cast<int64_t>(prompt.size());
    room(given, wanted_tokens(job, given));
  }
}

void Generator::prepare(const Job& job, size_t sequences) {
  check(job);
  int64_t longest = 1;
  for (const std::vector<int32_t>& prompt : job.prompts)
    longest = std::max(longest, static_cast<int64_t>(prompt.size()));
  longest = std::min(longest, kPromptRows);
  if (!state_ || state_->prompt_rows < longest) {
    std::vector<Slot> slots = state_ ? std::move(state_->slots) : std::vector<Slot>();
    state_.reset();  // first, so that the two need no memory at once
    state_ = std::make_unique<State>(stage_, stream_, limits_, longest);
    state_->slots = std::move(slots);  // their caches may hold what the job continues
  }
  state_->sampler.emplace(job.sampling);
  state_->slots.resize(std::min(static_cast<size_t>(limits_.batch), sequences));
  for (Slot& slot : state_->slots) slot.prompt.reset();  // forget the prompts of an earlier job
}

// The first child of a beam keeps its cache; the others take those of beams without children.
void Generator::follow_parents(const BeamSearch& search, std::vector<Slot*>& slots) {
  const std::vector<BeamSearch::Beam>& beams = search.running();
  std::vector<Slot*> next(slots.size(), nullptr), free = slots;
  for (size_t i = 0; i < beams.size(); ++i) {
    const auto own = std::find(free.begin(), free.end(), slots[beams[i].parent]);
    if (own == free.end()) continue;
    next[i] = *own;
    free.erase(own);
  }
  for (size_t i = 0; i < next.size(); ++i) {
    if (next[i]) continue;
    next[i] = free.back();
    free.pop_back();
    if (i >= beams.size()) continue;
    const KvCache& parent = *slots[beams[i].parent]->cache;
    next[i]->cache->copy(stream_, parent, parent.past());
  }
  for (size_t i = 0; i < beams.size(); ++i) next[i]->tokens = beams[i].tokens;
  slots = std::move(next);
}

BeamSearch Generator::search_beams(const Job& job, size_t prompt) {
  std::vector<Slot*> slots;
  for (Slot& slot : state_->slots) slots.push_back(&slot);
  Slot& first = *slots.front();
  begin(first, job, prompt * static_cast<size_t>(job.continuations));
  for (Slot* const slot : slots) make_room(*slot, first.cache->capacity());
  BeamSearch search(
      {.options = job.beams, .prompt = first.tokens, .max_new = first.max_new, .ends = job.stop_tokens});
  const auto start = std::chrono::steady_clock::now();
  while (extend(search)) {
    follow_parents(search, slots);
    pass(std::span(slots).first(search.running().size()));
  }
  totals_.seconds += seconds_since(start);
  return search;
}

/// What the first rank tells the others of a step of its search.
struct BeamTurn {
  bool goes_on = false;
  std::vector<BeamSearch::Step> steps;
  template <class V>
  void members(V&& visit) {
    visit(goes_on, steps);
  }
};

bool Generator::extend(BeamSearch& search) {
  BeamTurn turn;
  if (leads()) {
    const auto vocabulary = static_cast<size_t>(stage_.config().vocab_size);
    const size_t rows = search.running().size();
    for (size_t row = 0; row < rows; ++row) {
      const std::span<float> scores(state_->logits.data() + row * vocabulary, vocabulary);
      log_softmax(scores);
      state_->sampler->weigh_by_history(scores, search.running()[row].tokens);
    }
    turn.goes_on = search.extend({state_->logits.data(), rows * vocabulary});
  }
  if (leads() && limits_.ranks) turn.steps = search.steps();
  turn = of_first(std::move(turn));
  if (!leads()) search.follow(turn.steps);
  return turn.goes_on;
}

std::vector<Generated> Generator::run_beams(const Job& job) {
  if (limits_.batch < job.beams.beams || job.continuations > job.beams.beams)
    fail(ErrorKind::kInternal, job.beams.beams, " beams, a batch of ", limits_.batch, " and ",
         job.continuations, " continuations");
  if (job.beams.beams > stage_.config().vocab_size)
    fail(ErrorKind::kUsage, "--num-beams ", job.beams.beams, ": the model has a vocabulary of ",
         stage_.config().vocab_size, "; give at most as many");
  prepare(job, static_cast<size_t>(job.beams.beams));
  std::vector<Generated> out;
  for (size_t prompt = 0; prompt < job.prompts.size(); ++prompt) {
    const BeamSearch search = search_beams(job, prompt);
    if (leads()) tell_best(job, search, out);
  }
  return out;
}

void Generator::tell_best(const Job& job, const BeamSearch& search, std::vector<Generated>& out) {
  const Ending unended = state_->slots.front().cut_short ? Ending::kPositions : Ending::kLength;
  for (size_t i = 0; i < static_cast<size_t>(job.continuations); ++i) {
    const BeamSearch::Text& text = search.best()[i];
    Generated made{.tokens = {}, .ending = text.ended ? Ending::kStopToken : unended};
    for (const int32_t token : text.tokens) {
      totals_.later_tokens += made.tokens.empty() ? 0 : 1;
      made.tokens.push_back(token);
      ++totals_.new_tokens;
      if (!job.on_token || job.on_token(out.size(), token)) continue;
      made.ending = Ending::kCaller;
      break;
    }
    if (job.on_end) job.on_end(out.size(), made);
    out.push_back(std::move(made));
  }
}

std::vector<Generated> Generator::run(const Job& job) {
  if (job.beams.beams > 1) return run_beams(job);
  const size_t sequences = job.prompts.size() * static_cast<size_t>(job.continuations);
  std::vector<Generated> out(sequences);
  prepare(job, sequences);

  const auto end = [&](const Slot& slot) {
    if (leads() && job.on_end) job.on_end(slot.sequence, out[slot.sequence]);
  };
  size_t next = 0;
  std::vector<Slot*> active, free;
  for (Slot& slot : state_->slots) free.push_back(&slot);
  while (next < sequences || !active.empty()) {
    while (!free.empty() && next < sequences) {
      const std::span<Slot* const> begun = begin_some(free, job, next);
      next += begun.size();
      const std::vector<Choice>& first = choices(begun, job);
      std::vector<Slot*> ended;
      for (size_t i = 0; i < begun.size(); ++i) {
        const bool goes_on = take(*begun[i], first[i], out[begun[i]->sequence]);
        if (!goes_on) end(*begun[i]);
        (goes_on ? active : ended).push_back(begun[i]);
      }
      free.resize(free.size() - begun.size());
      free.insert(free.end(), ended.begin(), ended.end());
    }
    if (active.empty()) continue;
    step(active, job, out);
    for (Slot* const slot : active)
      if (slot->max_new == 0) {
        end(*slot);
        free.push_back(slot);
      }
    std::erase_if(active, [](const Slot* slot) { return slot->max_new == 0; });
  }
  return leads() ? out : std::vector<Generated>();
}

}  // namespace megalith
