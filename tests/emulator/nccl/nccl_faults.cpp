#include "tests/emulator/nccl/nccl_faults.h"

#include <cstdlib>

#include "tests/emulator/report.h"

namespace megalith::emulator {
namespace {

NcclFaults::Kind kind_of(const std::string& name) {
  constexpr const char* kNames[] = {"none", "remote", "hang", "kill", "refuse", "block", "delay"};
  for (int kind = 0; kind <= NcclFaults::kDelay; ++kind)
    if (name == kNames[kind]) return static_cast<NcclFaults::Kind>(kind);
  end_with("MEGALITH_NCCL_FAULT names no kind of fault: " + name);
}

NcclFaults::Where where_of(const std::string& end) {
  if (end.empty()) return NcclFaults::kCall;
  if (end == ":start") return NcclFaults::kStart;
  if (end == ":end") return NcclFaults::kEnd;
  end_with("MEGALITH_NCCL_FAULT ends with " + end + ", wanted :start, :end or nothing");
}

}  // namespace

NcclFaults NcclFaults::of(int rank) {
  NcclFaults faults;
  const char* const disagree = std::getenv("MEGALITH_NCCL_DISAGREE");
  faults.hangs_where_calls_disagree = disagree != nullptr && disagree == std::string("hang");
  const char* const text = std::getenv("MEGALITH_NCCL_FAULT");
  if (text == nullptr) return faults;
  const std::string all = text;
  const size_t first = all.find(':'), second = all.find(':', first + 1);
  if (second == std::string::npos) end_with("MEGALITH_NCCL_FAULT is not KIND:RANK:NUMBER: " + all);
  if (std::strtol(all.c_str() + first + 1, nullptr, 10) != rank) return faults;
  faults.kind = kind_of(all.substr(0, first));
  char* end = nullptr;
  faults.number = std::strtol(all.c_str() + second + 1, &end, 10);
  faults.where = where_of(end);
  return faults;
}

}  // namespace megalith::emulator
