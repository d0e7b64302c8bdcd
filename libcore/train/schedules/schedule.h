#pragma once

#include <cstdint>
#include <ostream>
#include <vector>

namespace megalith {

/// One step of a rank's work: the forward or backward pass of one microbatch through one of the rank's
/// chunks.
struct Step {
  enum Kind : uint8_t { kForward, kBackward } kind;
  int chunk;
  int microbatch;
  bool operator==(const Step&) const = default;
};
std::ostream& operator<<(std::ostream&, const Step&);  // "F1.3": chunk 1, microbatch 3

/// The order in which pipeline rank `rank` of `ranks` processes `microbatches` with `chunks` model chunks.
/// With one chunk it is Megatron's 1F1B, and `group` is ignored. With several chunks it is Megatron's
/// interleaving (Narayanan et al., SC 2021): the chunks in turn process `group` microbatches each. The last
/// group may be shorter than `group`, but not shorter than `ranks`. This is a pure function, so every rank
/// can compute every other rank's plan; chunk and rank determine what a step sends and receives. Throws
/// kUsage when there is no such interleaving.
std::vector<Step> plan_pipeline(int rank, int ranks, int chunks, int microbatches, int group);

/// The order for evaluation, which is the same on all `ranks` pipeline ranks: the chunks in turn process
/// `ranks` microbatches each, so that the input of the first rank's next chunk is ready when its turn comes.
/// Throws kUsage as plan_pipeline does.
std::vector<Step> plan_forward(int ranks, int chunks, int microbatches);

/// The number of tapes that a rank needs. A tape is in use from the forward to the backward pass of a
/// microbatch through a chunk; this is the largest number of tapes that `plan` uses at one time.
int tapes_in_flight(const std::vector<Step>& plan);

}  // namespace megalith
