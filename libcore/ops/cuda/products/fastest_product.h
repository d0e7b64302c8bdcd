#pragma once

#include <optional>
#include <vector>

#include "libcore/ops/backend/backend.h"
#include "libcore/ops/backend/product_choice.h"

namespace megalith::cuda {

/// megalith::fastest_products() on a backend that make_backend() made.
std::vector<std::optional<ProductAlgorithm>> fastest_products(Backend&, const std::vector<ProductKind>&);

}  // namespace megalith::cuda
