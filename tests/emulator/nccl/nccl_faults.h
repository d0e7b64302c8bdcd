#pragma once

#include <string>

namespace megalith::emulator {

/// What goes wrong with a rank's communicators, as MEGALITH_NCCL_FAULT=KIND:RANK:NUMBER says. The rank is
/// that of the first communicator that its thread made. With KIND:RANK:NUMBER:start, `kill` and `refuse` mean
/// its communicators' starts and splits, with KIND:RANK:NUMBER:end their ends. A rank that `kill` or `block`
/// strikes writes its number to the file MEGALITH_NCCL_STRUCK first.
/// - remote:RANK:CALL: from this call on, its calls do not end, and ncclCommGetAsyncError reports a remote
///   error.
/// - hang:RANK:CALL: from this call on, its calls do not end.
/// - kill:RANK:CALL: its process dies at this call.
/// - refuse:RANK:CALL: this call returns an internal error.
/// - block:RANK:CALL: the host's call does not return.
/// - delay:RANK:MS: each of its calls takes part this much later.
///
/// Ranks whose calls disagree end their processes, or with MEGALITH_NCCL_DISAGREE=hang wait for each other
/// for ever, as with NCCL.
struct NcclFaults {
  enum Kind { kNone, kRemote, kHang, kKill, kRefuse, kBlock, kDelay } kind = kNone;
  long number = 0;
  enum Where { kCall, kStart, kEnd } where = kCall;
  bool hangs_where_calls_disagree = false;

  static NcclFaults of(int rank);
  bool is(Kind wanted, long at, Where there = kCall) const {
    return kind == wanted && where == there && at >= number;
  }
};

}  // namespace megalith::emulator
