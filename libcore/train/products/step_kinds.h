#pragma once

#include <memory>
#include <set>

#include "libcore/ops/backend/attention_choice.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/ops/backend/product_choice.h"
#include "libcore/train/step/layout.h"

namespace megalith {

/// What the steps and evaluations of a run compute, on all ranks, for which there is a choice. A dry run of
/// all ranks finds it, once, when it is first asked for. Where micro-batches may be short, these are the
/// kinds of the full ones.
class StepKinds {
 public:
  explicit StepKinds(RunShape run);

  const std::set<ProductKind>& products();
  /// The kinds that cuDNN may compute. Empty where attention has dropout.
  const std::set<AttentionKind>& attention();

 private:
  const Backend& dry();

  const RunShape run_;
  std::unique_ptr<Backend> dry_;
};

}  // namespace megalith
