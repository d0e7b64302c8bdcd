#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libcore/plan/search/search.h"

namespace megalith {

/// How the best plan's time changes with ten per cent more or less of a rate, and which of the plans is then
/// the fastest.
struct Sensitivity {
  const char* what;
  double less = 0, more = 0;             // seconds of a step
  int winner_less = 0, winner_more = 0;  // index of the plan that is then the fastest
};
std::vector<Sensitivity> sensitivity(const PlanProblem&, const std::vector<Plan>&);

/// The plans that no other plan beats in both time and free memory, fastest first. Each needs less memory
/// than the one before it.
std::vector<Plan> pareto_front(const PlanProblem&, const Fixed&);

/// The limits of the problem: the fewest devices, the longest sequence and the most layers for which a plan
/// exists; 0: none exists. Each limit is searched by doubling, devices up to 64 times the problem's.
struct Inverse {
  int least_devices = 0;
  int longest_sequence = 0;
  int most_layers = 0;  // at the model's width
};
Inverse inverse_questions(const PlanProblem&, const Fixed&);

/// What limits the step: "stage 3 of 4: the LM head", "tensor-parallel communication", …
std::string bottleneck(const PlanProblem&, const Plan&);

}  // namespace megalith
