#pragma once

#include <cstdint>
#include <ostream>
#include <vector>

namespace megalith {

/// One step of a rank's work: a microbatch through one of its chunks, forward or backward.
struct Step {
  enum Kind : uint8_t { kForward, kBackward } kind;
  int chunk;
  int microbatch;
  bool operator==(const Step&) const = default;
};
std::ostream& operator<<(std::ostream&, const Step&);  // "F1.3": chunk 1, microbatch 3

/// The order in which pipeline rank `rank` of `ranks` processes `microbatches` with `chunks` model chunks:
/// Megatron's 1F1B (chunks == 1; `group` is not used) and its interleaving, where the chunks in turn process
/// `group` microbatches each (Narayanan et al., SC 2021). A pure function, so every rank knows every other
/// rank's plan; chunk and rank determine what a step sends and receives. The last group may be shorter than
/// `group`, but not shorter than `ranks`. Throws kUsage when no such interleaving exists.
std::vector<Step> plan_pipeline(int rank, int ranks, int chunks, int microbatches, int group);

/// The order for evaluation, the same on all `ranks` pipeline ranks: the chunks in turn process `ranks`
/// microbatches each, so that the input of the first rank's next chunk is ready when its turn comes. Throws
/// kUsage as plan_pipeline does.
std::vector<Step> plan_forward(int ranks, int chunks, int microbatches);

/// The largest number of microbatch-chunks at any time of `plan` whose forward pass is done and whose
/// backward pass is not: the number of tapes that a rank needs.
int tapes_in_flight(const std::vector<Step>& plan);

}  // namespace megalith
