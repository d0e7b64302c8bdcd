#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "libcore/ops/backend/backend.h"

namespace megalith {

/// Seconds that an op of this name and price takes on the imagined device; "copy", "fill" and "add" count as
/// ops, because they take time too.
using OpSeconds = std::function<double(std::string_view op, const Cost&)>;

/// A dry backend whose streams have clocks, which begin at 0: an op moves its stream's on, and a stream that
/// waits for an event is as late as that. One thread's at a time.
std::unique_ptr<Backend> make_timed_backend(OpSeconds);

/// A stream's clock in seconds. kInternal for another backend's.
double& stream_clock(const Stream&);

}  // namespace megalith
