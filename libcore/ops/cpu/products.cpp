#include "libcore/ops/cpu/products.h"

#include "libcore/base/plugins/plugin.h"

namespace megalith::cpu {

std::unique_ptr<Products> make_products() {
  static const Plugin kPlugin("libmegalith_onednn.so");
  return std::unique_ptr<Products>(kPlugin.function<Products*()>("megalith_onednn_products")());
}

}  // namespace megalith::cpu
