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
  int shards = 1;  // each bucket divides into this many equal parts: the number of data-parallel ranks
  int64_t bucket = std::numeric_limits<int64_t>::max();  // a bucket ends with the unit in which it reaches
                                                         // this many elements
  int buckets = 0;         // if above 0, replaces `bucket`: at most this many buckets, of similar size
  std::string alone = {};  // the parameter of this name, or the one tied to it, is a bucket of its own
  /// For ZeRO-2: a bucket's gradients share memory with those of the bucket two places later in the backward
  /// pass, since they have been used by the time the pass reaches it. The bucket of `alone` has its own
  /// memory.
  bool windows = false;
};

/// Neighbouring parameters whose gradients are reduced over the data-parallel ranks in one call. A bucket is
/// either the single parameter of StoreOptions::alone, or it ends where a unit (ParamTable::begin_unit) ends,
/// since the reduction waits for the bucket's last gradient.
struct Bucket {
  int64_t begin = 0, end = 0;  // range of values(), in elements; multiples of shards * kAlign
  int64_t grads = 0;           // offset of its gradients in the tensor of gradients, in elements
  int first_unit = 0, units = 0;
  bool alone = false;

  int64_t elements() const { return end - begin; }
};

/// The memory of a rank's parameters: one flat tensor of values and one of gradients, in the table's order,
/// with each parameter starting at a multiple of kAlign elements; gaps and padding are zero and stay zero.
/// Frozen parameters are in a separate tensor, without gradients or optimizer state; those with Param::int8
/// are in two more tensors: 8-bit numbers and their scales. A tied parameter shares the memory of the
/// parameter that Param::tie names, if the table has that parameter. Sets Param::value, Param::grad and
/// Constant::view, which are valid as long as the store. On the dry backend the views point nowhere.
class ParamStore {
 public:
  static constexpr int64_t kAlign = 64;

  ParamStore(ParamTable&, Stream&, const StoreOptions& = {});

  View values() const { return values_; }  // [elements()], trained parameters only
  /// [elements()] f32, in the order of values(); smaller with StoreOptions::windows, empty without
  /// StoreOptions::grads.
  View grads() const { return grads_; }
  View grads(const Bucket& bucket) const {
    return grads_.rows(bucket.grads, bucket.grads + bucket.elements());
  }
  /// In the order of a backward pass, so that the first bucket is reduced while the next is computed: the
  /// table's last parameters come first.
  const std::vector<Bucket>& buckets() const { return buckets_; }
  int64_t elements() const { return elements_; }      // of values(), with gaps
  int64_t parameters() const { return parameters_; }  // no gaps; frozen ones count, tied ones count once
  int64_t trained() const { return trained_; }        // the part of parameters() that is trained
  /// Where a trained parameter begins in values(), in elements.
  int64_t offset(const Param&) const;
  /// Bytes of the arenas of all values and constants, and of the arena of the gradients.
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

/// Sets every parameter to its Init: a constant, or normal numbers that depend only on the seed, the
/// parameter's name and the element's index in the global tensor (Philox, then Box-Muller), so that every
/// layout gets the same values. Rows beyond the global tensor stay zero. Blocking. `trained_only`: skips
/// frozen parameters, which are loaded from a file.
void initialize(ParamTable&, Stream&, uint64_t seed, bool trained_only = false);

}  // namespace megalith
