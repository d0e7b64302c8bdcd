#pragma once

#include <functional>

#include "libcore/json/json.h"

namespace megalith {

/// Checks that NCCL's calls among so many devices of this process give what they should, and measures them:
/// a JSON object for each, with "what", "ms" and, where it is one, the rate "gb_per_s". Of several devices
/// the rates are those of nccl-tests ("busbw"), which a link's data sheet can be compared with. Throws
/// kDevice where there are fewer devices, kInternal for a wrong result.
void probe_nccl(int ranks, bool quick, const std::function<void(const Json&)>& print);

}  // namespace megalith
