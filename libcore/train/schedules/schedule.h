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

/// The order in which pipeline rank `rank` of `ranks` works through `microbatches` with `chunks` model
/// chunks: Megatron's 1F1B (chunks == 1; `group` is not used) and its interleaving, where each chunk in turn
/// takes `group` microbatches (Narayanan et al., SC 2021). Pure, and the same function on every rank; what is
/// sent and received follows from (chunk, rank). A last group may be shorter than `group`, but not than
/// `ranks`. Throws kUsage when the interleaving cannot be cut so.
std::vector<Step> plan_pipeline(int rank, int ranks, int chunks, int microbatches, int group);

/// The order of evaluation, the same on each of `ranks` pipeline ranks: each chunk in turn takes `ranks`
/// microbatches, so that the first rank's next chunk finds its input ready when it comes to it. Throws kUsage
/// as plan_pipeline.
std::vector<Step> plan_forward(int ranks, int chunks, int microbatches);

/// Most microbatch-chunks whose forward is done and whose backward is not, at any time of `plan`: the tapes
/// that a rank needs.
int tapes_in_flight(const std::vector<Step>& plan);

}  // namespace megalith
