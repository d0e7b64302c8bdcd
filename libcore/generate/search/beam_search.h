#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "libcore/options/fields.h"

namespace megalith {

/// How many beams there are, and which of their texts is the best.
struct BeamOptions {
  static constexpr int kMost = 8;  // as many rows as the CPU computes at once

  int beams = 1;  // 1: no beams, each token is chosen for itself
  double length_penalty = 1;
  bool early_stopping = false;

  template <class V>
  void fields(V&& v) {
    v("num-beams", beams,
      "Search for the text that is likeliest as a whole, keeping this many beginnings at each step; 1: "
      "choose each token by itself.",
      between(1, kMost));
    v("length-penalty", length_penalty,
      "With --num-beams, a text's log-likelihood is divided by its length to this power; above 0 favors "
      "longer texts.");
    v("early-stopping", early_stopping,
      "With --num-beams, end the search once that many texts have ended; without it, once no beam can become "
      "better than these.");
  }
};

/// Beam search for one prompt, by the rules of transformers' generate() (generation/utils.py, _beam_search,
/// 5.24): scores are sums of log-probabilities, the candidates of a step are max(2, 1 + number of end tokens)
/// times as many as there are beams, and only those among the first `beams` may end a text.
class BeamSearch {
 public:
  struct Task {
    BeamOptions options;
    std::vector<int32_t> prompt;
    int64_t max_new = 1;             // a text has at most this many new tokens, at least one
    std::vector<int32_t> ends = {};  // the tokens that end a text
  };
  explicit BeamSearch(Task);

  /// A beginning of a text that is still extended.
  struct Beam {
    std::vector<int32_t> tokens;  // the prompt and the new tokens
    double score = 0;             // sum of the log-probabilities of the new tokens
    size_t parent = 0;            // the beam before extend() that this one extends
  };
  /// The likeliest first; before the first step only the prompt.
  const std::vector<Beam>& running() const { return running_; }

  /// Extends each beam by a token. `scores` [running().size(), V], where V is at least the number of beams:
  /// for each beam the log-probabilities of the next token, which options may have changed. Returns whether
  /// the search goes on.
  bool extend(std::span<const float> scores);

  /// How a beam extended another one.
  struct Step {
    size_t parent;
    int32_t token;
  };
  /// How the beams that run now extended those before.
  std::vector<Step> steps() const;
  /// Extends the beams as another search did, of which only the beams are followed: this one has no scores
  /// and no best texts.
  void follow(std::span<const Step>);

  struct Text {
    std::vector<int32_t> tokens;  // the new tokens, without an end token
    double score = 0;             // its log-likelihood divided by length ^ length_penalty
    bool ended = false;           // by an end token
  };
  /// The best texts that have ended, the best first. Valid once extend() has returned false.
  const std::vector<Text>& best() const { return best_; }

 private:
  struct Candidate {
    double score;
    size_t beam;
    int32_t token;
  };
  std::vector<Candidate> candidates(std::span<const float> scores) const;
  bool is_end(int32_t token) const;
  void finish(const Candidate&, double length);
  bool can_improve(double length) const;

  Task task_;
  int64_t made_ = 0;  // number of new tokens of each beam
  std::vector<Beam> running_;
  std::vector<Text> best_;
};

}  // namespace megalith
