#pragma once

#include <cstdint>

#include "libcore/model/params.h"
#include "libcore/tensor/arena.h"

namespace megalith {

struct StoreOptions {
  DType dtype = DType::kF32;  // of the values
  bool grads = true;          // false: inference, every Param::grad stays empty
};

/// The memory of a rank's parameters: one flat tensor of values and one of gradients, in the table's order,
/// each parameter starting at a multiple of kAlign elements; gaps and padding are zero and stay zero. A tied
/// parameter aliases the one it names when that is in the same table. Sets Param::value, Param::grad and
/// Constant::view, which are valid as long as the store. Works on the dry backend (views point nowhere).
class ParamStore {
 public:
  static constexpr int64_t kAlign = 64;

  ParamStore(ParamTable&, Stream&, const StoreOptions& = {});

  View values() const { return values_; }  // [elements()]
  /// [elements()] f32; empty without grads. Frozen parameters have a place here too, which stays zero.
  View grads() const { return grads_; }
  int64_t elements() const { return elements_; }      // with gaps
  int64_t parameters() const { return parameters_; }  // without them, tied ones once
  /// Place of a parameter in both flat tensors, in elements.
  int64_t offset(const Param&) const;
  void zero_grads(Stream&) const;

 private:
  int64_t elements_ = 0, parameters_ = 0;
  View values_, grads_;
  std::vector<Arena> arenas_;
};

/// Gives the table's constants memory and computes them.
Arena place_constants(ParamTable&, Stream&);

/// Sets every value: normal numbers by place (philox of seed, the parameter's name and the element's place in
/// the global tensor, then Box-Muller), or its constant. The same for every layout. Rows beyond the global
/// tensor become zero. Blocking.
void initialize(ParamTable&, Stream&, uint64_t seed);

}  // namespace megalith
