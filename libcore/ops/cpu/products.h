#pragma once

#include <memory>

#include "libcore/ops/linear.h"

namespace megalith::cpu {

/// Matrix products of any size with oneDNN, in libmegalith_onednn.so (base/plugins/plugin.h): it is a plugin
/// because oneDNN's 40 MB and 31,000 relocations would slow the start of programs that never multiply.
/// Several threads may call it.
class Products {
 public:
  virtual ~Products() = default;
  /// Whether oneDNN supports bf16 products on this processor.
  virtual bool has_bf16() const = 0;
  /// `op` has no empty axis. Throws kDevice if oneDNN refuses.
  virtual void run(const Gemm& op) = 0;
};

/// Opens the plugin. Throws kDevice if it or oneDNN is missing.
std::unique_ptr<Products> make_products();

}  // namespace megalith::cpu
