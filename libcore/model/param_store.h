#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "libcore/model/params.h"
#include "libcore/tensor/arena.h"

namespace megalith {

struct StoreOptions {
  DType dtype = DType::kF32;  // of the values
  bool grads = true;          // false: inference, every Param::grad stays empty
  int shards = 1;  // equal parts into which each bucket can be cut: the number of data-parallel ranks
  int64_t bucket = std::numeric_limits<int64_t>::max();  // a bucket with this many elements is full
  int buckets = 0;         // instead of `bucket`: this many buckets of similar size; 0: use `bucket`
  std::string alone = {};  // a parameter of this name, or tied to it, is a separate bucket
  /// The gradients of a bucket share memory with those of the second next one: they are used up (ZeRO-2)
  /// before the backward pass gets there. A bucket with a single parameter keeps its own memory.
  bool windows = false;
};

/// Neighbouring parameters whose gradients are reduced over the data-parallel ranks in one call. Consists of
/// whole units (ParamTable::begin_unit), since a call waits for its last gradient, or of a single parameter
/// (StoreOptions::alone).
struct Bucket {
  int64_t begin = 0, end = 0;  // elements of the flat tensor of values; a multiple of shards * kAlign
  int64_t grads = 0;           // the element of the gradients' memory at which its gradients begin
  int first_unit = 0, units = 0;
  bool alone = false;

  int64_t elements() const { return end - begin; }
};

/// The memory of a rank's parameters: one flat tensor of values and one of gradients, in the table's order,
/// with each parameter starting at a multiple of kAlign elements; gaps and padding are zero and stay zero.
/// Frozen parameters are in a separate tensor without gradients or optimizer state, those of Param::int8 in
/// two tensors, of 8-bit numbers and their scales. A tied parameter aliases the one it names if that is in
/// the same table. Sets Param::value, Param::grad and Constant::view, which are valid as long as the store.
/// Works on the dry backend (views point nowhere).
class ParamStore {
 public:
  static constexpr int64_t kAlign = 64;

  ParamStore(ParamTable&, Stream&, const StoreOptions& = {});

  View values() const { return values_; }  // [elements()], of what is trained
  /// [elements()] f32, parallel to the values; empty without grads, and smaller with windows.
  View grads() const { return grads_; }
  View grads(const Bucket& bucket) const {
    return grads_.rows(bucket.grads, bucket.grads + bucket.elements());
  }
  /// In the order of a backward pass, so that the first bucket is reduced while the next is computed: the
  /// table's last parameters come first.
  const std::vector<Bucket>& buckets() const { return buckets_; }
  int64_t elements() const { return elements_; }      // with gaps, of what is trained
  int64_t parameters() const { return parameters_; }  // without gaps, tied ones once, including frozen ones
  int64_t trained() const { return trained_; }        // only those that are trained
  /// Where a trained parameter begins in values(), in elements.
  int64_t offset(const Param&) const;
  /// Bytes of the arenas: all values and constants; gradients.
  size_t value_bytes() const { return value_bytes_; }
  size_t grad_bytes() const { return grad_bytes_; }

 private:
  void place(ParamTable&, const StoreOptions&);
  void give_views(ParamTable&);

  int64_t elements_ = 0, parameters_ = 0, trained_ = 0, grad_elements_ = 0, frozen_elements_ = 0,
          narrow_elements_ = 0, scale_elements_ = 0;
  size_t value_bytes_ = 0, grad_bytes_ = 0;
  std::vector<Bucket> buckets_;
  std::vector<int64_t> offsets_;  // of each parameter in its tensor of values, parallel to ParamTable::all()
  View values_, frozen_, narrow_, scales_, grads_;
  std::vector<Arena> arenas_;
};

/// Allocates and computes the table's constants.
Arena place_constants(ParamTable&, Stream&);

/// Sets every value: to normal numbers that depend on their place (Philox of seed, the parameter's name and
/// the element's place in the global tensor, then Box-Muller), or to its constant. The result is the same for
/// every layout. Rows beyond the global tensor stay zero. Blocking. `trained_only`: frozen values are left
/// alone, since they will be loaded.
void initialize(ParamTable&, Stream&, uint64_t seed, bool trained_only = false);

}  // namespace megalith
