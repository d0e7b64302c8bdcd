#include "libcore/train/schedules/schedule.h"

#include <algorithm>

#include "libcore/base/error.h"

namespace megalith {
namespace {

void check(int rank, int ranks, int chunks, int microbatches, int group) {
  if (ranks < 1 || rank < 0 || rank >= ranks || chunks < 1 || microbatches < 0)
    fail(ErrorKind::kInternal, "no pipeline plan for rank ", rank, " of ", ranks, ", ", chunks, " chunks, ",
         microbatches, " microbatches");
  if (chunks == 1) return;
  if (group < ranks)
    fail(ErrorKind::kUsage, "interleaved pipeline: groups of ", group, " microbatches are shorter than the ",
         ranks, " pipeline ranks; take at least ", ranks);
  const int rest = microbatches % group;
  if (rest != 0 && rest < ranks)
    fail(ErrorKind::kUsage, "interleaved pipeline: ", microbatches, " microbatches in groups of ", group,
         " leave a last group of ", rest, ", fewer than the ", ranks,
         " pipeline ranks; nearest number of microbatches that works: ", microbatches - rest + ranks);
}

// All forward steps in order: group by group of microbatches, and within each group chunk by chunk.
std::vector<Step> forward_order(int chunks, int microbatches, int group) {
  std::vector<Step> order;
  for (int first = 0; first < microbatches; first += group)
    for (int chunk = 0; chunk < chunks; ++chunk)
      for (int m = first; m < std::min(first + group, microbatches); ++m)
        order.push_back({Step::kForward, chunk, m});
  return order;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Step& step) {
  return out << (step.kind == Step::kForward ? 'F' : 'B') << step.chunk << '.' << step.microbatch;
}

std::vector<Step> plan_pipeline(int rank, int ranks, int chunks, int microbatches, int group) {
  check(rank, ranks, chunks, microbatches, group);
  const std::vector<Step> forward =
      forward_order(chunks, microbatches, chunks == 1 ? std::max(microbatches, 1) : group);
  const auto backward = [&](size_t i) {  // as forward[i], but the chunks are in reverse order
    return Step{Step::kBackward, chunks - 1 - forward[i].chunk, forward[i].microbatch};
  };
  // The number of forward passes before the first backward pass, which must wait until the first microbatch
  // has come back from the last stage.
  const int after = ranks - rank - 1;
  const size_t total = forward.size();
  const size_t warmup =
      std::min(total, static_cast<size_t>(chunks == 1 ? after : 2 * after + (chunks - 1) * group));

  std::vector<Step> plan(forward.begin(), forward.begin() + static_cast<std::ptrdiff_t>(warmup));
  plan.reserve(2 * total);
  for (size_t i = warmup; i < total; ++i) {
    plan.push_back(forward[i]);
    plan.push_back(backward(i - warmup));
  }
  for (size_t i = total - warmup; i < total; ++i) plan.push_back(backward(i));
  return plan;
}

std::vector<Step> plan_forward(int ranks, int chunks, int microbatches) {
  check(0, ranks, chunks, microbatches, ranks);
  return forward_order(chunks, microbatches, ranks);
}

int tapes_in_flight(const std::vector<Step>& plan) {
  int now = 0, max_in_flight = 0;
  for (const Step& step : plan) {
    now += step.kind == Step::kForward ? 1 : -1;
    max_in_flight = std::max(max_in_flight, now);
  }
  return max_in_flight;
}

}  // namespace megalith
