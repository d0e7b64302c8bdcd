#include "libcore/generate/search/beam_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace megalith {

BeamSearch::BeamSearch(Task task) : task_(std::move(task)) {
  running_.push_back({.tokens = task_.prompt});
}

bool BeamSearch::is_end(int32_t token) const {
  return std::find(task_.ends.begin(), task_.ends.end(), token) != task_.ends.end();
}

/// The best extensions of all beams, the best first; of equal ones that of the likelier beam, then that with
/// the lower id.
std::vector<BeamSearch::Candidate> BeamSearch::candidates(std::span<const float> scores) const {
  const auto beams = static_cast<size_t>(task_.options.beams);
  const size_t wanted = std::max<size_t>(2, 1 + task_.ends.size()) * beams;
  const size_t vocabulary = scores.size() / running_.size();
  const auto better = [](const Candidate& a, const Candidate& b) {
    if (a.score != b.score) return a.score > b.score;
    return a.beam != b.beam ? a.beam < b.beam : a.token < b.token;
  };
  std::vector<Candidate> best;  // a heap whose first one is the worst
  for (size_t beam = 0; beam < running_.size(); ++beam)
    for (size_t id = 0; id < vocabulary; ++id) {
      const Candidate one{running_[beam].score + static_cast<double>(scores[beam * vocabulary + id]), beam,
                          static_cast<int32_t>(id)};
      if (best.size() == wanted && !better(one, best.front())) continue;
      if (best.size() == wanted) {
        std::pop_heap(best.begin(), best.end(), better);
        best.pop_back();
      }
      best.push_back(one);
      std::push_heap(best.begin(), best.end(), better);
    }
  std::sort(best.begin(), best.end(), better);
  return best;
}

/// Adds a text unless as many better ones have ended.
void BeamSearch::finish(const Candidate& last, double length) {
  Text text{.tokens = {},
            .score = last.score / std::pow(length, task_.options.length_penalty),
            .ended = is_end(last.token)};
  const std::vector<int32_t>& tokens = running_[last.beam].tokens;
  text.tokens.assign(tokens.begin() + static_cast<std::ptrdiff_t>(task_.prompt.size()), tokens.end());
  if (!text.ended) text.tokens.push_back(last.token);
  const auto place = std::upper_bound(best_.begin(), best_.end(), text,
                                      [](const Text& a, const Text& b) { return a.score > b.score; });
  best_.insert(place, std::move(text));
  if (best_.size() > static_cast<size_t>(task_.options.beams)) best_.pop_back();
}

/// Whether the best beam, were its text to end now, would be better than the worst of the texts that have
/// ended.
bool BeamSearch::can_improve(double length) const {
  if (best_.size() < static_cast<size_t>(task_.options.beams)) return true;
  return running_.front().score / std::pow(length, task_.options.length_penalty) > best_.back().score;
}

bool BeamSearch::extend(std::span<const float> scores) {
  const auto beams = static_cast<size_t>(task_.options.beams);
  const std::vector<Candidate> best = candidates(scores);
  const auto length = static_cast<double>(++made_);
  const bool last = made_ == task_.max_new;
  const bool full = best_.size() == beams && task_.options.early_stopping;
  std::vector<Beam> next;
  for (size_t i = 0; i < best.size(); ++i) {
    const Candidate& one = best[i];
    const bool ends = last || is_end(one.token);
    if (ends && i < beams && !full) finish(one, length);
    if (ends || next.size() == beams) continue;
    next.push_back({.tokens = running_[one.beam].tokens, .score = one.score, .parent = one.beam});
    next.back().tokens.push_back(one.token);
  }
  running_ = std::move(next);
  if (running_.empty() || (best_.size() == beams && task_.options.early_stopping)) return false;
  return can_improve(length);
}

std::vector<BeamSearch::Step> BeamSearch::steps() const {
  std::vector<Step> out;
  for (const Beam& beam : running_) out.push_back({beam.parent, beam.tokens.back()});
  return out;
}

void BeamSearch::follow(std::span<const Step> steps) {
  std::vector<Beam> next;
  for (const Step& step : steps) {
    next.push_back({.tokens = running_.at(step.parent).tokens, .parent = step.parent});
    next.back().tokens.push_back(step.token);
  }
  running_ = std::move(next);
}

}  // namespace megalith
