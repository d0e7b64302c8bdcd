// The functions of libmegalith_cuda.so that ops/backend/product_plugin.cpp looks up.
#include "libcore/ops/cuda/backend/cuda_backend.h"
#include "libcore/ops/cuda/gemm.h"
#include "libcore/ops/cuda/products/fastest_product.h"

extern "C" {

/// Throws kDevice.
__attribute__((visibility("default"))) void megalith_product_library(const megalith::Backend& backend,
                                                                     megalith::ProductLibrary& library) {
  const megalith::cuda::DeviceFacts facts = megalith::cuda::facts_of(megalith::cuda::device_of(backend));
  library = {.gpu = facts.name, .cublas = static_cast<int64_t>(facts.cublas)};
}

/// Throws kDevice.
__attribute__((visibility("default"))) void megalith_fastest_products(
    megalith::Backend& backend, const std::vector<megalith::ProductKind>& kinds,
    std::vector<std::optional<megalith::ProductAlgorithm>>& fastest) {
  fastest = megalith::cuda::fastest_products(backend, kinds);
}

__attribute__((visibility("default"))) bool megalith_use_product(megalith::Backend& backend,
                                                                 const megalith::ChosenProduct& product) {
  return megalith::cuda::products_of(backend).use(product);
}
}
