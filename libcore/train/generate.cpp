#include "libcore/train/generate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/random.h"

namespace megalith {
namespace {

int32_t likeliest(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

/// A token that may be drawn, with exp((logit - greatest) / temperature).
struct Candidate {
  int32_t token;
  double weight;
};

std::vector<Candidate> weigh(std::span<const float> logits, double temperature) {
  const double greatest = logits[static_cast<size_t>(likeliest(logits))];
  std::vector<Candidate> out(logits.size());
  for (size_t i = 0; i < logits.size(); ++i)
    out[i] = {static_cast<int32_t>(i), std::exp((logits[i] - greatest) / temperature)};
  return out;
}

double total(const std::vector<Candidate>& candidates) {
  return std::accumulate(candidates.begin(), candidates.end(), 0.0,
                         [](double sum, const Candidate& c) { return sum + c.weight; });
}

/// Keeps the `top_k` likeliest, then the fewest of them that together have at least `top_p`. Sorted when
/// anything was asked for.
void filter(std::vector<Candidate>& candidates, const SampleOptions& options) {
  const bool cut_k = options.top_k > 0 && static_cast<size_t>(options.top_k) < candidates.size();
  if (!cut_k && options.top_p >= 1) return;
  const auto end = cut_k ? candidates.begin() + options.top_k : candidates.end();
  std::partial_sort(candidates.begin(), end, candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
  });
  candidates.erase(end, candidates.end());
  if (options.top_p >= 1) return;
  const double wanted = options.top_p * total(candidates);
  double sum = 0;
  size_t kept = 0;
  do sum += candidates[kept++].weight;
  while (kept < candidates.size() && sum < wanted);
  candidates.resize(kept);
}

/// Uniform in [0, 1).
double uniform(int64_t seed, int64_t step) {
  const auto low = [](int64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](int64_t x) { return static_cast<uint32_t>(x >> 32); };
  const auto bits = philox({low(step), high(step), 0, 0}, {low(seed), high(seed)});
  return (bits[0] + (bits[1] >> 11) / 0x1p21) / 0x1p32;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Bytes of scratch that logits() of `tokens` tokens takes, found on the dry backend.
size_t scratch_bytes(const Stage& stage, int64_t tokens) {
  const std::unique_ptr<Backend> dry = make_dry_backend();
  Stream stream(*dry);
  const std::unique_ptr<Communicator> alone = make_self_comm();
  const Region region(*alone);
  Arena scratch = Arena::counting("scratch");
  const View ids = Arena::counting("tokens").make(DType::kI32, {tokens, 1}, "tokens");
  KvCache cache(*dry, stage.config(), stage.layers(), {}, {.capacity = tokens, .dtype = stage.dtype()});
  stage.logits({.compute = stream, .tp = region, .scratch = scratch, .training = false}, ids, 1, cache);
  return scratch.peak();
}

/// One sequence and the memory of its continuation.
class Reader {
 public:
  Reader(const Stage& stage, Stream& stream, int64_t prompt, int64_t capacity)
      : stage_(stage),
        stream_(stream),
        alone_(make_self_comm()),
        region_(*alone_),
        scratch_(make_arena(stream.backend(), "scratch", scratch_bytes(stage, prompt))),
        inputs_(make_arena(stream.backend(), "tokens", static_cast<size_t>(prompt) * sizeof(int32_t) + 256)),
        cache_(stream.backend(), stage.config(), stage.layers(), {},
               {.capacity = capacity, .dtype = stage.dtype()}),
        logits_(static_cast<size_t>(stage.config().vocab_size)) {}

  /// Reads on; returns the logits after the last token, valid until the next call.
  std::span<const float> read(std::span<const int32_t> tokens) {
    const ArenaScope inputs_scope(inputs_), scratch_scope(scratch_);
    const View ids = inputs_.make(DType::kI32, {static_cast<int64_t>(tokens.size()), 1}, "tokens");
    stream_.from_host(ids, tokens.data());
    const View logits = stage_.logits(
        {.compute = stream_, .tp = region_, .scratch = scratch_, .training = false}, ids, 1, cache_);
    stream_.to_host(logits_.data(), logits);
    stream_.synchronize();
    return logits_;
  }

 private:
  const Stage& stage_;
  Stream& stream_;
  std::unique_ptr<Communicator> alone_;
  Region region_;
  Arena scratch_, inputs_;
  KvCache cache_;
  std::vector<float> logits_;
};

/// The most tokens that may be added. The last one needs no position: nobody reads on after it.
int64_t room(const ModelConfig& config, int64_t prompt, int64_t wanted) {
  if (config.position == PositionEmbedding::kNone) return wanted;
  if (prompt > config.usable_positions())
    fail(ErrorKind::kUsage, "the prompt has ", prompt, " tokens, the model ", config.usable_positions(),
         " positions; shorten the prompt");
  return std::min(wanted, config.usable_positions() - prompt + 1);
}

}  // namespace

int32_t choose_token(std::span<const float> logits, const SampleOptions& options, int64_t step) {
  for (const float logit : logits)
    if (std::isnan(logit))
      fail(ErrorKind::kData, "the model computes NaN; its weights are damaged, or the training diverged");
  if (options.temperature == 0) return likeliest(logits);
  std::vector<Candidate> candidates = weigh(logits, options.temperature);
  filter(candidates, options);
  double left = uniform(options.seed, step) * total(candidates);
  for (const Candidate& candidate : candidates)
    if ((left -= candidate.weight) < 0) return candidate.token;
  return candidates.back().token;
}

Generated generate(const Stage& stage, Stream& stream, std::span<const int32_t> prompt,
                   const SampleOptions& options, std::optional<int32_t> stop) {
  if (prompt.empty()) fail(ErrorKind::kInternal, "generation needs at least one token");
  const auto given = static_cast<int64_t>(prompt.size());
  const int64_t most = room(stage.config(), given, options.max_new_tokens);
  if (most < options.max_new_tokens)
    warn("only ", most, " of ", options.max_new_tokens, " new tokens fit: the prompt has ", given,
         " tokens, the model ", stage.config().usable_positions(), " positions");
  Reader reader(stage, stream, given, given + most - 1);

  Generated out;
  const auto start = std::chrono::steady_clock::now();
  std::span<const float> logits = reader.read(prompt);
  out.prompt_seconds = seconds_since(start);
  while (true) {
    const int32_t token = choose_token(logits, options, static_cast<int64_t>(out.tokens.size()));
    if ((out.stopped = stop == token)) break;
    out.tokens.push_back(token);
    if (static_cast<int64_t>(out.tokens.size()) == most) break;
    logits = reader.read({&token, 1});
  }
  out.seconds = seconds_since(start) - out.prompt_seconds;
  return out;
}

GeneratedText generate_text(const Stage& stage, Stream& stream, const Tokenizer& tokenizer,
                            std::string_view prompt, const SampleOptions& options) {
  std::vector<int32_t> ids;
  tokenizer.encode(prompt, ids);
  if (ids.empty()) ids.push_back(tokenizer.eod());
  GeneratedText out;
  out.prompt_tokens = static_cast<int64_t>(ids.size());
  out.generated = generate(stage, stream, ids, options, tokenizer.eod());

  // Decoded together: a tokenizer may treat the beginning of a text differently.
  const std::string before = tokenizer.decode(ids);
  ids.insert(ids.end(), out.generated.tokens.begin(), out.generated.tokens.end());
  const std::string all = tokenizer.decode(ids);
  out.text = concat(
      prompt, all.starts_with(before) ? all.substr(before.size()) : tokenizer.decode(out.generated.tokens));
  return out;
}

std::string sample_text(const Stage& stage, Stream& stream, const Tokenizer& tokenizer,
                        std::string_view prompt, const SampleOptions& options) {
  try {
    return generate_text(stage, stream, tokenizer, prompt, options).text;
  } catch (const Error& error) {
    return concat("(no sample: ", error.what(), ')');
  }
}

}  // namespace megalith
