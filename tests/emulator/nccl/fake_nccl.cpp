// NCCL's functions, which the emulated plugin exports: the build's libnccl.so.2 is a link to it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <nccl.h>

#include "tests/emulator/graphs.h"
#include "tests/emulator/nccl/fake_comm.h"
#include "tests/emulator/report.h"
#include "tests/emulator/streams.h"

namespace megalith::emulator {
namespace {

/// The calls of a group that has not ended, by communicator.
struct OpenGroup {
  int depth = 0;
  std::vector<std::pair<std::shared_ptr<FakeComm>, std::vector<FakeComm::Call>>> calls;
  std::vector<ncclComm_t> aborted;
  bool refused = false;  // one of its calls
};
thread_local OpenGroup group;
thread_local int own_rank = -1;  // of the thread's first communicator

/// Frees the memory of communicators, for which CUDA waits until the device has done all its work, also that
/// of other communicators. Their flags are set before, so their own work ends.
void free_aborted() {
  const auto aborted = std::exchange(group.aborted, {});
  for (const ncclComm_t comm : aborted) Streams::get().finish_all(comm->comm->device());
  for (const ncclComm_t comm : aborted) delete comm;
}

ncclResult_t launch_group() {
  ncclResult_t worst = ncclSuccess;
  auto calls = std::exchange(group.calls, {});
  free_aborted();
  if (std::exchange(group.refused, false)) return ncclInternalError;
  for (auto& [comm, of_comm] : calls) worst = std::max(worst, comm->launch(std::move(of_comm)));
  return worst;
}

ncclResult_t put(ncclComm_t comm, const FakeComm::Call& call) {
  if (comm->comm->refuses(NcclFaults::kCall)) {
    group.refused = group.depth > 0;
    return ncclInternalError;
  }
  const auto same = [comm](const auto& entry) { return entry.first == comm->comm; };
  auto found = std::find_if(group.calls.begin(), group.calls.end(), same);
  if (found == group.calls.end()) found = group.calls.insert(found, {comm->comm, {}});
  found->second.push_back(call);
  return group.depth == 0 ? launch_group() : ncclSuccess;
}

SharedCall shared(SharedCall::Kind kind, size_t count, ncclDataType_t type, int reduce = 0, int root = 0) {
  return {.kind = kind, .type = type, .reduce = reduce, .root = root, .elements = count};
}

}  // namespace
}  // namespace megalith::emulator

using namespace megalith::emulator;

// NOLINTBEGIN: names and signatures are NCCL's
#pragma GCC visibility push(default)
extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  const char* const other = std::getenv("MEGALITH_NCCL_VERSION");
  *version = other == nullptr ? NCCL_VERSION_CODE : std::atoi(other);
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::random_device random;
  std::snprintf(id->internal, sizeof id->internal, "/megalith-nccl-%08x%08x", random(), random());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (rank < 0 || rank >= ranks) return ncclInvalidArgument;
  if (refuse_in_capture() != cudaSuccess) return ncclUnhandledCudaError;
  if (own_rank < 0) own_rank = rank;
  *comm = new ncclComm{
      std::make_shared<FakeComm>(FakeComm::Setup{.world = id.internal,
                                                 .rank = rank,
                                                 .size = ranks,
                                                 .origin = own_rank,
                                                 .name = config->commName == nullptr ? "" : config->commName,
                                                 .blocking = config->blocking != 0})};
  if ((*comm)->comm->refuses(NcclFaults::kStart)) return ncclInternalError;
  (*comm)->comm->begin_start();
  return ncclInProgress;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t* config) {
  if (refuse_in_capture() != cudaSuccess) return ncclUnhandledCudaError;
  if (comm->comm->refuses(NcclFaults::kStart)) return ncclInternalError;
  return comm->comm->split(color, key, made, *config);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  *state = comm->comm->state();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (comm->comm->refuses(NcclFaults::kEnd)) return ncclInternalError;
  return comm->comm->finalize();
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const ncclResult_t result = comm->comm->destroy();
  delete comm;
  return result;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (capture_of_thread()) end_with("nccl: a communicator is aborted while its thread captures");
  if (group.refused) end_with("nccl: a group of calls is still open after one of them was refused");
  comm->comm->abort();
  group.aborted.push_back(comm);
  if (group.depth == 0) free_aborted();
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclInternalError:
      return "internal error";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "another error";
  }
}

const char* ncclGetLastError(ncclComm_t) {
  return "the fake has no more to say";
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) return ncclInvalidUsage;
  return --group.depth == 0 ? launch_group() : ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t reduce,
                           ncclComm_t comm, cudaStream_t stream) {
  return put(comm, {.shared = shared(SharedCall::kAllReduce, count, type, reduce),
                    .in = in,
                    .out = out,
                    .stream = stream});
}

ncclResult_t ncclAllGather(const void* in, void* out, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return put(comm,
             {.shared = shared(SharedCall::kAllGather, count, type), .in = in, .out = out, .stream = stream});
}

ncclResult_t ncclReduceScatter(const void* in, void* out, size_t count, ncclDataType_t type,
                               ncclRedOp_t reduce, ncclComm_t comm, cudaStream_t stream) {
  return put(comm, {.shared = shared(SharedCall::kReduceScatter, count, type, reduce),
                    .in = in,
                    .out = out,
                    .stream = stream});
}

ncclResult_t ncclReduce(const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t reduce,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return put(comm, {.shared = shared(SharedCall::kReduce, count, type, reduce, root),
                    .in = in,
                    .out = out,
                    .stream = stream});
}

ncclResult_t ncclBroadcast(const void* in, void* out, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return put(comm, {.shared = shared(SharedCall::kBroadcast, count, type, 0, root),
                    .in = in,
                    .out = out,
                    .stream = stream});
}

ncclResult_t ncclSend(const void* in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return put(comm, {.shared = shared(SharedCall::kMessage, count, type),
                    .in = in,
                    .out = nullptr,
                    .to = peer,
                    .stream = stream});
}

ncclResult_t ncclRecv(void* out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return put(comm, {.shared = shared(SharedCall::kMessage, count, type),
                    .in = nullptr,
                    .out = out,
                    .from = peer,
                    .stream = stream});
}

}  // extern "C"
#pragma GCC visibility pop
// NOLINTEND
