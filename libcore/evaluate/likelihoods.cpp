#include "libcore/evaluate/likelihoods.h"

#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/model/ctx.h"

namespace megalith {
namespace {

/// The scratch bytes of a pass, measured on the dry backend.
size_t scratch_bytes(const Stage& stage, const ReadingSize& size) {
  const std::unique_ptr<Backend> dry = make_dry_backend();
  Stream stream(*dry);
  const std::unique_ptr<Communicator> alone = make_self_comm();
  const Region region(*alone);
  Arena scratch = Arena::counting("scratch"), host = Arena::counting("tokens");
  const Ctx ctx{.compute = stream, .tp = region, .scratch = scratch, .training = false};
  KvCache cache(*dry, stage.config(), stage.layers(), TensorSplit{},
                {.batch = 1, .capacity = size.capacity, .dtype = stage.dtype()});
  std::vector<Branch> branches;
  for (int64_t left = size.rows; left > 0; left -= branches.back().rows)
    branches.push_back({0, std::min(left, size.capacity)});
  stage.read_branches(ctx, host.make(DType::kI32, {size.rows, 1}, "tokens"), cache, branches);
  const View some = scratch.make(stage.dtype(), {size.targets, stage.config().hidden}, "scored rows");
  const auto floats = [&] { return host.make(DType::kF32, {size.targets}, "scores"); };
  stage.scores(ctx,
               {.loss = floats(),
                .max = floats(),
                .sum_exp = floats(),
                .targets = host.make(DType::kI32, {size.targets}, "targets")},
               some);
  return scratch.peak();
}

/// The number of targets that are scored at once, so that their logits take at most 64 MiB.
int64_t target_rows(int64_t vocabulary, int64_t wanted) {
  constexpr int64_t kLogits = int64_t{16} << 20;
  return std::clamp<int64_t>(kLogits / vocabulary, 1, wanted);
}

ReadingSize size_of(const ReadingPlan& plan, int64_t vocabulary, int64_t prefix) {
  return {.rows = std::min(plan.rows, LikelihoodReader::kPassRows),
          .targets = target_rows(vocabulary, static_cast<int64_t>(plan.targets.size())),
          .capacity = prefix + plan.longest};
}

ReadingSize larger(const ReadingSize& a, const ReadingSize& b) {
  return {std::max(a.rows, b.rows), std::max(a.targets, b.targets), std::max(a.capacity, b.capacity)};
}

size_t cache_bytes(const KvCache& cache, const Layers& layers) {
  size_t bytes = 0;
  for (size_t i = 0; i < static_cast<size_t>(layers.count); ++i)
    for (const View& part : {cache.layer(i).k, cache.layer(i).v})
      bytes += Arena::bytes_of(part.dtype, part.shape);
  return bytes;
}

size_t input_bytes(const ReadingSize& size) {
  return static_cast<size_t>(size.rows + 4 * size.targets) * sizeof(int32_t) + 5 * Arena::kAlignment;
}

/// Whether the target's logit is the largest. The loss is log(sum_exp) + max - logit, rounded to fp32.
bool is_largest(float loss, float max, float sum_exp) {
  constexpr float kUlps = 2 * 1.2e-7F;
  const float log_sum = std::log(sum_exp);
  return loss - log_sum <= kUlps * std::max(std::abs(max), log_sum);
}

}  // namespace

int64_t positions_of_a_text(const ModelConfig& config, DType dtype, std::string_view device) {
  constexpr int64_t kWithoutEnd = 2048;
  const std::optional<LastPosition> last = last_position(config, dtype, device);
  return last ? last->positions : kWithoutEnd;
}

ReadingSize reading_size(std::span<const ScoredTokens> texts, int64_t vocabulary) {
  return texts.empty() ? ReadingSize{} : size_of(plan_reading(texts), vocabulary, 0);
}

size_t reading_bytes(const Stage& stage, const ReadingSize& size) {
  if (size.rows == 0) return 0;
  const std::unique_ptr<Backend> dry = make_dry_backend();
  const KvCache cache(*dry, stage.config(), stage.layers(), TensorSplit{},
                      {.batch = 1, .capacity = size.capacity, .dtype = stage.dtype()});
  return scratch_bytes(stage, size) + input_bytes(size) + cache_bytes(cache, stage.layers());
}

struct LikelihoodReader::State {
  State(const Stage& stage, Stream& stream, const ReadingSize& wanted)
      : size(wanted),
        scratch(make_arena(stream.backend(), "scratch", scratch_bytes(stage, wanted))),
        inputs(make_arena(stream.backend(), "tokens", input_bytes(wanted))),
        cache(stream.backend(), stage.config(), stage.layers(), TensorSplit{},
              {.batch = 1, .capacity = wanted.capacity, .dtype = stage.dtype()}) {}

  ReadingSize size;
  std::unique_ptr<Communicator> alone = make_self_comm();
  Region region{*alone};
  Arena scratch, inputs;
  KvCache cache;
  std::vector<float> loss, max, sum_exp;
  std::vector<int32_t> ids;
};

LikelihoodReader::LikelihoodReader(const Stage& stage, Stream& stream, const Limits& limits)
    : stage_(stage), stream_(stream), limits_(limits) {}
LikelihoodReader::~LikelihoodReader() = default;

size_t LikelihoodReader::bytes() const {
  return state_ ? state_->scratch.capacity() + state_->inputs.capacity() +
                      cache_bytes(state_->cache, stage_.layers())
                : 0;
}

void LikelihoodReader::prepare(const ReadingPlan& plan) {
  const int64_t prefix = positions_of(limits_.prefix);
  const ReadingSize wanted = larger(limits_.size, size_of(plan, stage_.config().vocab_size, prefix));
  if (state_ && state_->size.rows >= wanted.rows && state_->size.targets >= wanted.targets &&
      state_->size.capacity >= wanted.capacity)
    return;
  state_ = std::make_unique<State>(stage_, stream_, wanted);
  if (limits_.prefix) state_->cache.put(stream_, prefix, limits_.prefix->values);
}

std::vector<Likelihood> LikelihoodReader::read(std::span<const ScoredTokens> texts, const OnRows& on_rows) {
  std::vector<Likelihood> out(texts.size());
  if (texts.empty()) return out;
  ReadingPlan plan = plan_reading(texts);
  prepare(plan);
  std::span<const ReadingPlan::Target> targets = plan.targets;
  int64_t done = 0;
  for (size_t next = 0; next < plan.pieces.size();) {
    Pass pass = next_pass(plan, next, texts);
    pass.first_row = done;
    done += static_cast<int64_t>(pass.tokens.size());
    const auto last = std::ranges::lower_bound(targets, done, {}, &ReadingPlan::Target::row);
    pass.targets = targets.first(static_cast<size_t>(last - targets.begin()));
    targets = targets.subspan(pass.targets.size());
    run(pass, out);
    tokens_read_ += static_cast<int64_t>(pass.tokens.size());
    if (on_rows) on_rows(done, plan.rows);
  }
  if (!std::ranges::all_of(out, [](const Likelihood& one) { return std::isfinite(one.log); }))
    fail(ErrorKind::kData,
         "the model's log-likelihoods are not all numbers; its weights hold NaN or infinity");
  return out;
}

LikelihoodReader::Pass LikelihoodReader::next_pass(ReadingPlan& plan, size_t& next,
                                                   std::span<const ScoredTokens> texts) const {
  const int64_t prefix = positions_of(limits_.prefix);
  Pass pass;
  int64_t room = state_->size.rows;
  while (next < plan.pieces.size() && room > 0 &&
         (limits_.texts == 0 || static_cast<int64_t>(pass.branches.size()) < limits_.texts)) {
    ReadingPlan::Piece& piece = plan.pieces[next];
    const int64_t rows = std::min(room, piece.rows);
    pass.branches.push_back({prefix + piece.past, rows});
    const auto tokens =
        texts[piece.text].inputs().subspan(static_cast<size_t>(piece.past), static_cast<size_t>(rows));
    pass.tokens.insert(pass.tokens.end(), tokens.begin(), tokens.end());
    room -= rows;
    piece.past += rows;
    piece.rows -= rows;
    if (piece.rows == 0) ++next;
  }
  return pass;
}

void LikelihoodReader::run(const Pass& pass, std::vector<Likelihood>& out) {
  State& state = *state_;
  const ArenaScope inputs_scope(state.inputs), scratch_scope(state.scratch);
  const Ctx ctx{.compute = stream_, .tp = state.region, .scratch = state.scratch, .training = false};
  const View tokens = state.inputs.make(DType::kI32, {static_cast<int64_t>(pass.tokens.size()), 1}, "tokens");
  stream_.from_host(tokens, pass.tokens.data());
  const ConstView output = stage_.read_branches(ctx, tokens, state.cache, pass.branches);
  const auto most = static_cast<size_t>(state.size.targets);
  for (std::span<const ReadingPlan::Target> left = pass.targets; !left.empty();) {
    const size_t count = std::min(most, left.size());
    score(left.first(count), pass.first_row, output, out);
    left = left.subspan(count);
  }
}

void LikelihoodReader::score(std::span<const ReadingPlan::Target> targets, int64_t first_row,
                             ConstView output, std::vector<Likelihood>& out) {
  State& state = *state_;
  const ArenaScope inputs_scope(state.inputs), scratch_scope(state.scratch);
  const Ctx ctx{.compute = stream_, .tp = state.region, .scratch = state.scratch, .training = false};
  const auto n = static_cast<int64_t>(targets.size());
  const int64_t hidden = stage_.config().hidden;
  const ConstView rows = output.as_shape({output.shape[0], hidden});
  const View some = state.scratch.make(output.dtype, {n, hidden}, "scored rows");
  for (int64_t begin = 0; begin < n;) {  // each run of rows that follow each other
    int64_t end = begin + 1;
    const auto row = [&](int64_t i) { return targets[static_cast<size_t>(i)].row - first_row; };
    while (end < n && row(end) == row(end - 1) + 1) ++end;
    stream_.copy(some.rows(begin, end), rows.rows(row(begin), row(begin) + end - begin));
    begin = end;
  }
  state.ids.clear();
  for (const ReadingPlan::Target& target : targets) state.ids.push_back(target.token);
  const auto floats = [&](std::vector<float>& host) {
    host.resize(targets.size());
    return state.inputs.make(DType::kF32, {n}, "scores");
  };
  const View ids = state.inputs.make(DType::kI32, {n}, "targets");
  stream_.from_host(ids, state.ids.data());
  const View loss = floats(state.loss), max = floats(state.max), sum_exp = floats(state.sum_exp);
  stage_.scores(ctx, {.loss = loss, .max = max, .sum_exp = sum_exp, .targets = ids}, some);
  stream_.to_host(state.loss.data(), loss);
  stream_.to_host(state.max.data(), max);
  stream_.to_host(state.sum_exp.data(), sum_exp);
  for (size_t i = 0; i < targets.size(); ++i) {
    Likelihood& text = out[targets[i].text];
    text.log -= static_cast<double>(state.loss[i]);
    text.greedy = text.greedy && is_largest(state.loss[i], state.max[i], state.sum_exp[i]);
  }
}

}  // namespace megalith
