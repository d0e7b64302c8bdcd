#pragma once

#include <string>

namespace megalith::emulator {

/// What goes wrong with a rank's communicators, as MEGALITH_NCCL_FAULT=KIND:RANK:NUMBER says. The rank is
/// that of the first communicator that its thread made.
///   remote:RANK:CALL  from this call on, its calls do not end, and ncclCommGetAsyncError reports a remote
///   error hang:RANK:CALL    from this call on, its calls do not end kill:RANK:CALL    its process dies at
///   this call delay:RANK:MS     each of its calls takes part this much later
/// Ranks whose calls disagree end their processes, or with MEGALITH_NCCL_DISAGREE=hang wait for each other
/// for ever, as with NCCL.
struct NcclFaults {
  enum Kind { kNone, kRemote, kHang, kKill, kDelay } kind = kNone;
  long number = 0;
  bool hangs_where_calls_disagree = false;

  static NcclFaults of(int rank);
  bool is(Kind wanted, long call) const { return kind == wanted && call >= number; }
};

}  // namespace megalith::emulator
