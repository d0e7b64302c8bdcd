#include "libcore/ops/backend/product_plugin.h"

#include "libcore/base/plugins/plugin.h"
#include "libcore/ops/backend/cuda_plugin.h"

namespace megalith {

ProductLibrary product_library(const Backend& backend) {
  ProductLibrary library;
  cuda_plugin().function<void(const Backend&, ProductLibrary&)>("megalith_product_library")(backend, library);
  return library;
}

std::vector<std::optional<ProductAlgorithm>> fastest_products(Backend& backend,
                                                              const std::vector<ProductKind>& kinds) {
  using Found = std::vector<std::optional<ProductAlgorithm>>;
  Found found;
  cuda_plugin().function<void(Backend&, const std::vector<ProductKind>&, Found&)>(
      "megalith_fastest_products")(backend, kinds, found);
  return found;
}

bool use_product(Backend& backend, const ChosenProduct& product) {
  return cuda_plugin().function<bool(Backend&, const ChosenProduct&)>("megalith_use_product")(backend,
                                                                                              product);
}

}  // namespace megalith
