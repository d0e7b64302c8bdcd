#include "libcore/plan/search/search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "libcore/plan/price/code_base.h"
#include "libcore/plan/price/rules.h"
#include "libcore/plan/price/trainer.h"
#include "libcore/plan/search/split.h"

namespace megalith {
namespace {

constexpr int kLargestGroup = 32, kLargestMicroBatch = 32;
/// Uneven partitions are tried up to this ratio of the slowest to the mean stage.
constexpr double kMaxIdle = 1.125;
constexpr double kDoubt = 1.5;  // factor by which the closed forms of memory may be wrong

/// The divisors of `n` up to `most`, in ascending order. Looks for the smaller one of each pair: a search of
/// a deep model asks so often that trying all numbers took a tenth of its time.
std::vector<int> divisors(int n, int most) {
  std::vector<int> out, larger;
  for (int d = 1; int64_t{d} * d <= n; ++d) {
    if (n % d != 0) continue;
    out.push_back(d);
    if (n / d != d) larger.push_back(n / d);
  }
  out.insert(out.end(), larger.rbegin(), larger.rend());
  out.erase(std::upper_bound(out.begin(), out.end(), most), out.end());
  return out;
}

/// How many numbers of recomputed layers are tried for a stage. A deep model has many stages and chunks, and
/// a mixture several times as many layouts, so that fewer numbers keep a search within seconds.
int most_recomputed(const ModelShape& m) {
  constexpr int kTogether = 1 << 15, kFewest = 8, kMost = 128, kLayoutsOfMixture = 4, kFewestOfMixture = 4;
  const int tried = std::clamp(kTogether / m.layers, kFewest, kMost);
  const bool fewer = tried < kMost && m.has_experts();
  return fewer ? std::max(tried / kLayoutsOfMixture, kFewestOfMixture) : tried;
}

/// How far apart the numbers of recomputed layers are that are tried for a stage of `most` layers. If not
/// every number is tried, they are multiples of the chunks, since a plan has no others (R1).
int step_of_recomputed(int most, int tried, int chunks) {
  const int step = (most + tried - 1) / tried;
  return step > 1 ? (step + chunks - 1) / chunks * chunks : 1;
}

std::vector<int> powers_of_two(int most) {
  std::vector<int> out;
  for (int v = 1; v <= most; v *= 2) out.push_back(v);
  return out;
}

template <class T>
std::vector<T> either(const std::optional<T>& fixed, std::vector<T> all) {
  return fixed ? std::vector<T>{*fixed} : std::move(all);
}

/// A plan's position in the order: by seconds per sample, then bytes, then the sizes, so that no two plans
/// are equal.
struct Rank {
  double seconds_of_sample, bytes;
  Candidate candidate;

  auto key() const {
    const Candidate& c = candidate;
    return std::make_tuple(seconds_of_sample, bytes, c.tensor, c.pipeline, c.context, c.micro_batch, c.chunks,
                           c.sequence, c.sharding, c.recompute, c.recompute_layers, c.expert,
                           c.expert_tensor);
  }
  bool operator<(const Rank& other) const { return key() < other.key(); }
};

/// A heap of the best plans so far, with the worst of these on top.
class Best {
 public:
  explicit Best(size_t size) : size_(size) {}
  void offer(const Rank& rank) {
    if (ranks_.size() == size_ && !(rank < ranks_.front())) return;
    ranks_.push_back(rank);
    std::push_heap(ranks_.begin(), ranks_.end());
    if (ranks_.size() <= size_) return;
    std::pop_heap(ranks_.begin(), ranks_.end());
    ranks_.pop_back();
  }
  /// The seconds per sample that a plan must not exceed to enter the heap.
  double limit() const {
    return ranks_.size() < size_ ? std::numeric_limits<double>::infinity() : ranks_.front().seconds_of_sample;
  }
  std::vector<Rank> sorted() {
    std::sort_heap(ranks_.begin(), ranks_.end());
    return std::move(ranks_);
  }

 private:
  size_t size_;
  std::vector<Rank> ranks_;
};

/// What our trainer says of a candidate. Asking takes longer than pricing it, so it is asked once.
enum class Answer : uint8_t { kNotAsked, kRuns, kRefuses };

/// A legal partition; recomputation and sharding are still open.
struct Family {
  Candidate candidate;
  size_t price;                      // index of its LayerPrice in prices_
  std::vector<Answer> answers = {};  // of the trainer for each choice and sharding; empty: it is not asked
  double least_of_sample = 0;        // a lower bound of its candidates' seconds per sample
};

class Search {
 public:
  Search(const PlanProblem& problem, const Fixed& fixed, size_t top)
      : p_(problem), fixed_(fixed), best_(std::max<size_t>(top, 1)) {}

  SearchResult run(SearchMode mode) {
    shapes();
    if (mode == SearchMode::kExhaustive) result_.fitting = 0;
    if (mode == SearchMode::kBounded) {
      for (Family& family : families_) bound(family);
      std::stable_sort(families_.begin(), families_.end(), [](const Family& a, const Family& b) {
        return a.least_of_sample < b.least_of_sample;
      });
    }
    for (Family& family : families_) {
      if (mode == SearchMode::kBounded && family.least_of_sample > best_.limit()) break;
      price(family, mode);
    }
    for (const Rank& rank : best_.sorted()) result_.plans.push_back(make_plan(p_, rank.candidate));
    if (result_.plans.empty() && closest_) result_.closest = make_plan(p_, closest_->candidate);
    for (const auto& [seconds, rank] : misses_)  // slower plans exceed it by less, so the last match counts
      if (fastest_ && seconds < fastest_->seconds_of_sample) result_.missed = make_plan(p_, rank.candidate);
    return std::move(result_);
  }

 private:
  void shapes() {
    const int world = p_.machine.world;
    for (int tensor : either(fixed_.tensor, divisors(world, std::min(p_.model.heads, kLargestGroup))))
      for (int context : either(fixed_.context, powers_of_two(kLargestGroup)))
        for (int micro_batch : either(fixed_.micro_batch, powers_of_two(kLargestMicroBatch)))
          for (bool sequence : sequences(tensor))
            experts({.tensor = tensor, .context = context, .micro_batch = micro_batch, .sequence = sequence});
  }

  std::vector<bool> sequences(int tensor) const {
    if (tensor == 1) return {false};  // S1: sequence parallelism needs several tensor ranks
    if (fixed_.sequence) return {*fixed_.sequence};
    // S2: experts need sequence parallelism.
    return p_.model.has_experts() ? std::vector<bool>{true} : std::vector<bool>{false, true};
  }

  void experts(Candidate c) {
    const int experts = p_.model.expert_count();
    const std::vector<int> ranks = experts > 0 ? divisors(experts, p_.machine.world) : std::vector<int>{1};
    const std::vector<int> parts = experts > 0 ? divisors(c.tensor, c.tensor) : std::vector<int>{1};
    for (int expert : either(fixed_.expert, ranks))
      for (int expert_tensor : either(fixed_.expert_tensor, parts)) {
        c.expert = expert;
        c.expert_tensor = expert_tensor;
        pipelines(c);
      }
  }

  void pipelines(Candidate c) {
    const int world = p_.machine.world, rest = world / (c.tensor * c.context);
    bool priced = false;
    for (int pipeline : either(fixed_.pipeline, divisors(std::max(rest, 1), p_.model.layers))) {
      c.pipeline = pipeline;
      if (!fixed_.pipeline && !worth_cutting(pipeline)) continue;
      if (fixed_.data && int64_t{*fixed_.data} * c.tensor * c.context * pipeline != world) continue;
      for (int chunks : chunk_choices(pipeline)) family(c, chunks, priced);
    }
  }

  /// Whether to try this number of stages: if the layers divide evenly over them, if the user gave layers of
  /// stages, or if stages would idle little. 126 layers over 16 stages are tried, 96 over 64 are not.
  bool worth_cutting(int pipeline) const {
    if (p_.model.layers % pipeline == 0 || !p_.stage_layers.empty() || fixed_.first_layers ||
        fixed_.last_layers)
      return true;
    const double mean = static_cast<double>(p_.model.layers) / pipeline;
    const int slowest = (p_.model.layers + pipeline - 1) / pipeline;
    return slowest <= kMaxIdle * mean;
  }

  /// Numbers of chunks that divide the layers evenly. If the number of stages does not divide the layers,
  /// numbers that divide the layers plus one each for the embedding and the head, and leave a layer beside
  /// these: the time model takes all chunks of a stage for equally long.
  std::vector<int> chunk_choices(int pipeline) const {
    if (fixed_.chunks) return {*fixed_.chunks};
    if (pipeline == 1 || !p_.stage_layers.empty()) return {1};
    if (p_.model.layers % pipeline == 0) return divisors(p_.model.layers / pipeline, p_.model.layers);
    const int counted = p_.model.layers + 2;
    if (counted % pipeline != 0) return {1};
    return divisors(counted / pipeline, std::max(1, counted / pipeline - 1));
  }

  bool cut_is_given(const Candidate& c) const {
    return fixed_.first_layers || fixed_.last_layers || !p_.stage_layers.empty() ||
           p_.model.layers % c.pipeline == 0;
  }
  /// Sets the layers of the first and the last stage of an uneven partition, as the exact split gives them.
  void cut(Candidate& c) const {
    const LayerPrice& price = prices_.back();
    const double layer = price.seconds();
    std::vector<StageLimit> stages(static_cast<size_t>(c.pipeline));
    stages.front().extra = price.embedding / layer;
    stages.back().extra += price.head / layer;
    const std::vector<int> split = split_layers(p_.model.layers, stages);
    c.first_layers = split.front();
    c.last_layers = split.back();
  }

  void family(Candidate c, int chunks, bool& priced) {
    c.chunks = chunks;
    c.recompute = fixed_.recompute.value_or(Recomputed::kNone);
    c.first_layers = fixed_.first_layers.value_or(0);
    c.last_layers = fixed_.last_layers.value_or(0);
    c.counts_embedding = fixed_.counts_embedding;
    c.counts_head = fixed_.counts_head;
    const bool given = cut_is_given(c);
    if (!given && chunks > 1) {
      c.counts_embedding = c.counts_head = true;
      c.first_layers = c.last_layers = (p_.model.layers + 2) / c.pipeline - 1;
    }
    ++result_.families;
    if (const char* const rule = broken_rule(p_, c)) {
      if (++result_.rejected[rule] == 1) result_.example[rule] = complete(p_, c)->reason;
      return;
    }
    if (!priced) prices_.push_back(price_layer(p_, shape_of(c)));
    priced = true;
    if (!given && chunks == 1) cut(c);
    Family one{c, prices_.size() - 1};
    if (const std::string refusal = refused_here(one); !refusal.empty()) {
      if (++result_.rejected["M1"] == 1) result_.example["M1"] = refusal;
      return;
    }
    result_.candidates += static_cast<int64_t>(choices(c).size() * shardings_of(c).size());
    families_.push_back(std::move(one));
  }

  struct Choice {
    Recomputed recompute;
    int layers;
  };
  /// M1: why our trainer, the only one for this machine, runs a partition with none of the recomputations and
  /// shardings that would be tried. Empty: it runs it with one, or the plan is for other devices.
  std::string refused_here(Family& family) {
    if (!p_.trained_here) return {};
    Candidate c = family.candidate;
    const std::vector<Choice>& all = choices(c);
    const std::span<const Sharding> kinds = shardings_of(c);
    family.answers.assign(all.size() * kinds.size(), Answer::kNotAsked);
    std::string first;
    for (size_t i = 0; i < family.answers.size(); ++i) {
      choose(all[i / kinds.size()], kinds[i % kinds.size()], c);
      const std::string refusal = trainer_refusal(p_, c);
      family.answers[i] = refusal.empty() ? Answer::kRuns : Answer::kRefuses;
      if (refusal.empty()) return {};
      if (first.empty()) first = refusal;
    }
    return first;
  }
  /// M1: whether a plan for this machine is one that our trainer runs.
  bool runs_here(const Candidate& c, Answer& answer) const {
    if (answer == Answer::kNotAsked)
      answer = trainer_refusal(p_, c).empty() ? Answer::kRuns : Answer::kRefuses;
    return answer == Answer::kRuns;
  }
  void choose(const Choice& choice, Sharding sharding, Candidate& c) const {
    c.recompute = choice.recompute;
    c.recompute_layers = choice.layers * (fixed_.recompute_layers ? c.chunks : 1);
    c.sharding = sharding;
  }
  const std::vector<Choice>& choices(const Candidate& c) {
    const int most = most_stage_layers(p_, c);
    const int step = step_of_recomputed(most, most_recomputed(p_.model), c.chunks);
    std::vector<Choice>& out = choices_[{most, step}];
    if (!out.empty()) return out;
    const auto layers = [&](Recomputed what) {
      const bool full = what == Recomputed::kFull, several = full && !fixed_.recompute_layers;
      for (int n = step; several && n < most; n += step) out.push_back({what, n});
      out.push_back({what, full ? fixed_.recompute_layers.value_or(0) : 0});  // 0: all
    };
    if (fixed_.recompute)
      layers(*fixed_.recompute);
    else
      for (Recomputed what : {Recomputed::kNone, Recomputed::kAttention, Recomputed::kFull})
        if (may_recompute(what)) layers(what);
    return out;
  }
  /// E2: an overlapped exchange excludes the recomputation of whole layers. G1: graphs exclude all of it.
  bool may_recompute(Recomputed what) const {
    if (what == Recomputed::kFull && p_.software.overlap_exchange) return false;
    return what == Recomputed::kNone || !graphs_exclude_recomputation(p_);
  }
  std::vector<Sharding> shardings() const {
    std::vector<Sharding> all = {Sharding::kNone, Sharding::kOptimizer, Sharding::kGradients};
    const bool ours = p_.trained_here || p_.software.code_base == kMegalithSoftware;
    if (!ours) all.push_back(Sharding::kParameters);  // our trainer has no ZeRO-3
    return either(fixed_.sharding, std::move(all));
  }
  /// The kinds of sharding that are tried. If a single rank holds each parameter, nothing can be shared, so
  /// only the first one is tried.
  std::span<const Sharding> shardings_of(const Candidate& c) const {
    const std::span<const Sharding> all(shardings_);
    return holders(p_, c) == 1 ? all.first(1) : all;
  }

  void bound(Family& family) {
    const LayerPrice& price = prices_[family.price];
    constexpr double kRounding = 1 - 1e-12;  // the bound may round its sums in another order
    family.least_of_sample =
        kRounding * least_seconds(p_, family.candidate, price, layout_of(p_, family.candidate, price)) /
        static_cast<double>(family.candidate.global_batch);
  }

  /// Bytes that a device must have. For a plan that our trainer runs here, the exact number takes a third of
  /// a millisecond. So it is computed only if the closed forms do not settle whether the plan fits or is
  /// among the best.
  double needed(const Candidate& c, const LayerPrice& price, const Layout& layout, double seconds) const {
    const double closed = worst_stage(p_, c, price, layout).estimate.needed();
    const bool sure = closed > kDoubt * allowed_ || (seconds > best_.limit() && closed * kDoubt < allowed_);
    if (!p_.trained_here || sure) return closed;
    return fullest_stage(p_, c, price, layout).estimate.needed();
  }

  void price(Family& family, SearchMode mode) {
    Candidate c = family.candidate;
    const LayerPrice& price = prices_[family.price];
    const Layout layout = layout_of(p_, c, price);
    const double samples = static_cast<double>(c.global_batch);
    const std::span<const Sharding> kinds = shardings_of(c);
    std::vector<bool> slower(kinds.size());  // whether more recomputed layers are only slower
    size_t place = 0;
    for (const Choice& choice : choices(c)) {
      for (size_t i = 0; i < kinds.size(); ++i, ++place) {
        if (slower[i]) continue;
        choose(choice, kinds[i], c);
        ++result_.priced;
        const double seconds = step_time(p_, c, price, layout).total() / samples;
        // R1: any other number counts as the next multiple of the chunks, which is tried itself.
        const bool listed = c.recompute_layers % c.chunks == 0;
        const bool worse = mode == SearchMode::kBounded && seconds > best_.limit();
        slower[i] = worse && choice.recompute == Recomputed::kFull;
        if (mode == SearchMode::kBounded && (!listed || worse)) continue;
        if (p_.trained_here && !runs_here(c, family.answers[place])) continue;
        const double bytes = needed(c, price, layout, seconds);
        const bool fits = bytes <= allowed_;
        if (fits && result_.fitting) ++*result_.fitting;
        if (!listed) continue;
        const Rank rank{seconds, bytes, c};
        if (fits) {
          if (!fastest_ || rank < *fastest_) fastest_ = rank;
          best_.offer(rank);
          continue;
        }
        miss(rank);
        if (!closest_ || std::tie(bytes, seconds) < std::tie(closest_->bytes, closest_->seconds_of_sample)) {
          closest_ = rank;
        }
      }
    }
  }

  /// Records a plan that does not fit, if every faster one exceeds the memory by more.
  void miss(const Rank& rank) {
    auto after = misses_.lower_bound(rank.seconds_of_sample);
    if (after != misses_.begin() && std::prev(after)->second.bytes <= rank.bytes) return;
    if (after != misses_.end() && after->first == rank.seconds_of_sample && after->second < rank) return;
    while (after != misses_.end() && after->second.bytes >= rank.bytes) after = misses_.erase(after);
    misses_.insert_or_assign(rank.seconds_of_sample, rank);
  }

  const PlanProblem& p_;
  const Fixed& fixed_;
  const std::vector<Sharding> shardings_ = shardings();
  const double allowed_ = allowed_memory(p_);
  Best best_;
  std::optional<Rank> closest_, fastest_;
  std::map<double, Rank> misses_;  // by seconds per sample
  std::vector<LayerPrice> prices_;
  std::vector<Family> families_;
  std::map<std::pair<int, int>, std::vector<Choice>> choices_;  // by the most layers of a stage, and the step
  SearchResult result_;
};

}  // namespace

SearchResult search_plans(const PlanProblem& problem, const Fixed& fixed, size_t top, SearchMode mode) {
  return Search(problem, fixed, top).run(mode);
}

SearchResult search_beside_saves(PlanProblem& problem, const Fixed& fixed, size_t top, SearchMode mode) {
  SearchResult found = search_plans(problem, fixed, top, mode);
  const bool copies = problem.save_copy != SaveCopy::kNone;
  if (!found.plans.empty() || !copies || problem.needs_save_copy) return found;
  problem.save_copy = SaveCopy::kNone;
  return search_plans(problem, fixed, top, mode);
}

Plan make_plan(const PlanProblem& p, const Candidate& c) {
  const LayerPrice price = price_layer(p, shape_of(c));
  const Layout layout = layout_of(p, c, price);
  return {c, fullest_stage(p, c, price, layout), step_time(p, c, price, layout)};
}

}  // namespace megalith
