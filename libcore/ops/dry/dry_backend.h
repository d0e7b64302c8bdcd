#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string_view>

#include "libcore/ops/backend/attention_choice.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/ops/backend/product_choice.h"

namespace megalith {

/// The seconds that an op of this name and cost takes on the simulated device; "copy", "fill" and "add" count
/// as ops, since they take time too.
using OpSeconds = std::function<double(std::string_view op, const Cost&)>;

/// A dry backend that fuses epilogues, as the CUDA backend does.
std::unique_ptr<Backend> make_dry_cuda_backend();

/// A dry backend whose streams have clocks that begin at 0: an op advances its stream's clock, and waiting
/// for an event sets the clock to the event's time if that is later. Not thread-safe.
std::unique_ptr<Backend> make_timed_backend(OpSeconds);

/// The scratch memory of a stream on which the CUDA backend would run all ops that this backend has run, in
/// bytes. kInternal for a backend that is not dry.
size_t cuda_workspace(const Backend&);

/// The kinds of the products that this backend has run. kInternal for a backend that is not dry.
const std::set<ProductKind>& products_run(const Backend&);

/// The kinds of attention whose gradient this backend has run. kInternal for a backend that is not dry.
const std::set<AttentionKind>& attention_run(const Backend&);

/// A stream's clock in seconds. kInternal for a stream of another backend.
double& stream_clock(const Stream&);

}  // namespace megalith
