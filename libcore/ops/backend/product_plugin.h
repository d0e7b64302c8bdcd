#pragma once

#include <optional>
#include <vector>

#include "libcore/ops/backend/backend.h"
#include "libcore/ops/backend/product_choice.h"

/// The choice among cuBLASLt's algorithms for products. The backends are those that make_cuda_backend() made.
namespace megalith {

/// Throws kDevice.
ProductLibrary product_library(const Backend&);

/// For each kind, times the algorithms that cuBLASLt itself would try first, up to eight, on the backend's
/// device, and returns the fastest one whose result is right: it wrote the whole result each time, and each
/// element agrees with that of the first of them. Nothing if there is none, or if there is one alone, which
/// needs no choice and is not timed. Frees what it allocates, which is at most what the products themselves
/// need and their results once more. Throws kDevice.
std::vector<std::optional<ProductAlgorithm>> fastest_products(Backend&, const std::vector<ProductKind>&);

/// From now on the backend computes products of that kind, whose matrices begin at multiples of 16 bytes, by
/// that algorithm; all others by the one that cuBLASLt suggests. Must be called before the first of them.
/// Changes nothing and returns false if cuBLASLt refuses the algorithm on this device.
bool use_product(Backend&, const ChosenProduct&);

}  // namespace megalith
