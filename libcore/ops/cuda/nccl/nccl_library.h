#pragma once

#include <string>

#include <nccl.h>  // of the toolkit, or of NVIDIA's wheel; the tests' emulated plugin has its own

namespace megalith::cuda {

/// The functions of libnccl.
struct NcclLibrary {
  decltype(&ncclGetVersion) get_version;
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRankConfig) start;
  decltype(&ncclCommSplit) split;
  decltype(&ncclCommGetAsyncError) get_state;
  decltype(&ncclCommFinalize) finalize;
  decltype(&ncclCommDestroy) destroy;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclGetErrorString) error_text;
  decltype(&ncclGetLastError) last_error;
  decltype(&ncclGroupStart) begin_group;
  decltype(&ncclGroupEnd) end_group;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclReduce) reduce;
  decltype(&ncclBroadcast) broadcast;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;

  /// "2.28.9"
  std::string version() const;
};

/// Opens libnccl, unless it is open; `path` is a file, or a name that the dynamic linker finds. Throws
/// kDevice if it is missing or older than 2.22, the first version that can abort several communicators
/// together.
const NcclLibrary& open_nccl(const std::string& path);
/// The library that open_nccl() opened.
const NcclLibrary& nccl();

}  // namespace megalith::cuda
