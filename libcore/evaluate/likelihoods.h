#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "libcore/evaluate/reading_plan.h"
#include "libcore/generate/generate.h"
#include "libcore/model/stage.h"

namespace megalith {

/// What a model says of the scored tokens of a text.
struct Likelihood {
  double log = 0;      // the sum of their log-likelihoods, in nats
  bool greedy = true;  // whether each is the likeliest token at its place, up to rounding
};

/// The positions that a text may take: those of a model with activations of this type on this device or,
/// without position embeddings, as many as the windows of lm-evaluation-harness have by default.
int64_t positions_of_a_text(const ModelConfig&, DType, std::string_view device);

/// What reading the texts takes with a model of this vocabulary.
ReadingSize reading_size(std::span<const ScoredTokens> texts, int64_t vocabulary);
/// The bytes that a LikelihoodReader allocates for it, measured on the dry backend.
size_t reading_bytes(const Stage&, const ReadingSize&);

/// Computes log-likelihoods of texts. The model must be whole and placed on the stream's backend.
class LikelihoodReader {
 public:
  static constexpr int64_t kPassRows = 1024;  // maximum number of tokens that a pass reads
  struct Limits {
    int64_t texts = 0;                 // maximum number of texts that a pass reads; 0: only kPassRows counts
    const KvPrefix* prefix = nullptr;  // precedes every text
    ReadingSize size = {};             // at least this much is allocated, if anything is read
  };
  LikelihoodReader(const Stage&, Stream&, const Limits&);
  ~LikelihoodReader();

  using OnRows = std::function<void(int64_t done, int64_t all)>;
  /// The likelihoods of `texts`, in their order. `on_rows` is called after each pass, with the number of
  /// tokens that were read. kInternal for texts beyond the model's positions; kData if a log-likelihood is
  /// not a number.
  std::vector<Likelihood> read(std::span<const ScoredTokens> texts, const OnRows& on_rows = {});

  /// The number of tokens that the model has read so far: a shared beginning counts once.
  int64_t tokens_read() const { return tokens_read_; }
  size_t bytes() const;  // that it has allocated

 private:
  struct State;
  struct Pass {
    std::vector<Branch> branches;
    std::vector<int32_t> tokens;
    std::span<const ReadingPlan::Target> targets;  // their rows are counted through all pieces
    int64_t first_row = 0;
  };
  void prepare(const ReadingPlan&);
  /// Moves pieces, or the part of a piece that fits, from `plan`, beginning at piece `next`, to a pass.
  Pass next_pass(ReadingPlan& plan, size_t& next, std::span<const ScoredTokens> texts) const;
  void run(const Pass&, std::vector<Likelihood>&);
  void score(std::span<const ReadingPlan::Target>, int64_t first_row, ConstView output,
             std::vector<Likelihood>&);

  const Stage& stage_;
  Stream& stream_;
  Limits limits_;
  int64_t tokens_read_ = 0;
  std::unique_ptr<State> state_;
};

}  // namespace megalith
