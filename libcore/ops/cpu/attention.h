#pragma once

#include "libcore/ops/attention.h"
#include "libcore/ops/cpu/kernels/kernels.h"
#include "libcore/ops/cpu/thread_team.h"
#include "libcore/ops/prefix.h"

namespace megalith::cpu {

/// Runs the ops on a packed QKV: rotation, attention forward and backward, prefixes, and attention over the
/// cache of generation. Several threads may call it at once.
class AttentionRunner {
 public:
  AttentionRunner(const Kernels& kernels, ThreadTeam& team) : kernels_(kernels), team_(team) {}
  void run(const Rope&) const;
  void run(const PutPrefix&) const;
  void run(const PrefixGrad&) const;
  void run(const Attention&) const;
  void run(const AttentionGrad&) const;
  void run(const CopyKeyValues&) const;
  void run(const CachedAttention&) const;

 private:
  void cached_attention_in_fp32(const CachedAttention&) const;
  /// Copies one group's new keys and values of one sequence to the cache.
  void append_to_cache(const CachedAttention&, int64_t sequence, int64_t group) const;

  const Kernels& kernels_;
  ThreadTeam& team_;  // for CachedAttention, whose jobs are short
};

}  // namespace megalith::cpu
