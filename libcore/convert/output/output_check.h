#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "libcore/convert/output/check.h"
#include "libcore/convert/output/conversion.h"
#include "libcore/io/files/placed_files.h"
#include "libcore/threads/beside.h"

namespace megalith {

/// The check of a conversion: both models run on a few tokens. The source's side does so from the beginning,
/// on a thread of its own, while the output is written; so does the output's side where it can follow.
class OutputCheck {
 public:
  explicit OutputCheck(const Conversion& conversion);  // must outlive this
  ~OutputCheck();                                      // gives up what still runs
  OutputCheck(const OutputCheck&) = delete;
  OutputCheck& operator=(const OutputCheck&) = delete;

  bool wanted() const { return conversion_.check; }
  /// Logs how far the logits are apart. kInternal when they are not the same model, unless the user asked for
  /// a narrower type (`rounded`), which may change it.
  void compare(const ModelView& written, bool rounded);

  /// Runs the written model, which is opened although its tensors are still to come: reading waits for them.
  using Follow = std::function<CheckedSide(const CheckRun&)>;
  /// Begins that on a thread of its own, if the check is wanted. `files` outlive this.
  void follow(PlacedFiles& files, Follow side);
  /// compare() with what follow() began.
  void compare_followed(bool rounded);

 private:
  void compare_with(const CheckedSide& written, bool rounded);

  const Conversion& conversion_;
  std::atomic<bool> stop_ = false;
  PlacedFiles* files_ = nullptr;
  CheckedSide source_side_, written_side_;
  std::optional<Beside> source_run_, written_run_;  // which fill them
};

}  // namespace megalith
