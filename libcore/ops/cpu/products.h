#pragma once

#include <memory>

#include "libcore/ops/linear.h"

namespace megalith::cpu {

/// Products of matrices of any size by oneDNN, in libmegalith_onednn.so (base/plugin.h): that library has
/// 40 MB and 31,000 relocations, which programs that multiply nothing would pay for at their start. Safe to
/// call from several threads.
class Products {
 public:
  virtual ~Products() = default;
  /// Whether it multiplies bf16 on this processor.
  virtual bool has_bf16() const = 0;
  /// `op` has no empty axis. Throws kDevice when oneDNN refuses.
  virtual void run(const Gemm& op) = 0;
};

/// Opens the plugin. Throws kDevice when it or oneDNN is missing.
std::unique_ptr<Products> make_products();

}  // namespace megalith::cpu
