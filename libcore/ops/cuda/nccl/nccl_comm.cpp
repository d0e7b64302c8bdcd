#include "libcore/ops/cuda/nccl/nccl_comm.h"

#include "libcore/base/error.h"

namespace megalith::cuda {

ncclResult_t NcclComm::state() const {
  ncclResult_t state = ncclInProgress;
  const ncclResult_t asked = library_.get_state(comm_, &state);
  return asked == ncclSuccess ? state : asked;
}

std::string NcclComm::words(ncclResult_t result) const {
  const char* const more = library_.last_error(comm_);
  return concat("NCCL ", library_.version(), ": ", library_.error_text(result), " (error ",
                static_cast<int>(result), more == nullptr || *more == '\0' ? "" : "; ",
                more == nullptr ? "" : more, "); NCCL_DEBUG=WARN in the environment lets it say more");
}

void NcclComm::check(ncclResult_t result, const char* what) const {
  if (result != ncclSuccess && result != ncclInProgress) fail(ErrorKind::kComm, what, ": ", words(result));
}

void NcclComm::await(const char* what) const {
  ncclResult_t now = ncclInProgress;
  watch_.await([&] { return (now = state()) != ncclInProgress; });
  check(now, what);
}

std::string NcclComm::problem() const {
  if (comm_ == nullptr) return {};
  const ncclResult_t now = state();
  return now == ncclSuccess || now == ncclInProgress ? std::string() : words(now);
}

}  // namespace megalith::cuda
