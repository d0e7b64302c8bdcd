#include "libcore/plan/search.h"

#include <algorithm>
#include <limits>

namespace megalith {
namespace {

std::vector<int> divisors(int n, int most) {
  std::vector<int> out;
  for (int d = 1; d <= std::min(n, most); ++d)
    if (n % d == 0) out.push_back(d);
  return out;
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

class Search {
 public:
  Search(const PlanProblem& problem, const Fixed& fixed) : p_(problem), fixed_(fixed) {}

  SearchResult run() {
    for (int tensor : either(fixed_.tensor, divisors(p_.machine.world, p_.model.heads)))
      for (int pipeline : either(fixed_.pipeline, divisors(p_.machine.world, p_.model.layers)))
        for (int context : either(fixed_.context, {1}))
          batches({.tensor = tensor, .pipeline = pipeline, .context = context});
    std::stable_sort(result_.plans.begin(), result_.plans.end(), [&](const Plan& a, const Plan& b) {
      const double fast = a.tokens_per_second(p_), other = b.tokens_per_second(p_);
      return fast != other ? fast > other : a.memory.bill.device() < b.memory.bill.device();
    });
    return std::move(result_);
  }

 private:
  /// Interleaving is worth trying only where there is a pipeline to fill.
  std::vector<int> chunk_choices(int pipeline) const {
    if (pipeline == 1) return {1};
    return divisors(std::max(p_.model.layers / pipeline, 1), 8);
  }

  void batches(Candidate c) {
    for (int chunks : either(fixed_.chunks, chunk_choices(c.pipeline)))
      for (int micro_batch : either(fixed_.micro_batch, powers_of_two(64))) {
        c.chunks = chunks;
        c.micro_batch = micro_batch;
        switches(c);
      }
  }

  void switches(Candidate c) {
    const bool ranks = p_.machine.world > c.tensor * c.pipeline * c.context;
    for (bool sequence : either<bool>(
             fixed_.sequence, c.tensor > 1 ? std::vector<bool>{true, false} : std::vector<bool>{false}))
      for (bool sharded : either<bool>(fixed_.distributed_optimizer,
                                       ranks ? std::vector<bool>{true, false} : std::vector<bool>{false}))
        for (Recompute recompute :
             either<Recompute>(fixed_.recompute, {Recompute::kNone, Recompute::kFull})) {
          c.sequence = sequence;
          c.distributed_optimizer = sharded;
          c.recompute = recompute;
          consider(c);
        }
  }

  void consider(Candidate c) {
    ++result_.considered;
    if (const auto rejection = complete(p_, c)) {
      ++result_.rejected[rejection->rule];
      result_.example.try_emplace(rejection->rule, rejection->reason);
      return;
    }
    Plan plan{c, worst_stage(p_, c), step_time(p_, c)};
    if (plan.memory.bill.device() <= p_.machine.device.memory) {
      result_.plans.push_back(plan);
      return;
    }
    ++result_.too_large;
    if (!result_.closest || plan.memory.bill.device() < result_.closest->memory.bill.device())
      result_.closest = plan;
  }

  const PlanProblem& p_;
  const Fixed& fixed_;
  SearchResult result_;
};

}  // namespace

SearchResult search_plans(const PlanProblem& problem, const Fixed& fixed) {
  return Search(problem, fixed).run();
}

}  // namespace megalith
