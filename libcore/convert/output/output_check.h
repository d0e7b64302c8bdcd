#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "libcore/convert/output/check.h"
#include "libcore/convert/output/conversion.h"
#include "libcore/io/files/placed_files.h"
#include "libcore/threads/beside.h"

namespace megalith {

/// The check of a conversion: the source and the output run on a few tokens, and their logits are compared.
/// The source runs from the start, on its own thread, while the output is written. The output runs meanwhile,
/// too, if its tensors can be read while they are being written: follow().
class OutputCheck {
 public:
  explicit OutputCheck(const Conversion& conversion);  // `conversion` must outlive this object
  ~OutputCheck();                                      // stops what is still running
  OutputCheck(const OutputCheck&) = delete;
  OutputCheck& operator=(const OutputCheck&) = delete;

  bool wanted() const { return conversion_.check; }
  /// Runs the written model and logs by how much the logits differ. kInternal if they differ by more than
  /// rounding errors, unless the user asked for a narrower type (`rounded`).
  void compare(const ModelView& written, bool rounded);

  /// Runs the written model. The model may be opened before its tensors are written: reading a tensor waits
  /// until it is.
  using Follow = std::function<CheckedSide(const CheckRun&)>;
  /// Starts `side` on a separate thread if the check is wanted. `files` must outlive this object.
  void follow(PlacedFiles& files, Follow side);
  /// As compare(), with the run that follow() started.
  void compare_followed(bool rounded);

 private:
  void compare_with(const CheckedSide& written, bool rounded);

  const Conversion& conversion_;
  std::atomic<bool> stop_ = false;
  PlacedFiles* files_ = nullptr;
  CheckedSide source_side_, written_side_;
  std::optional<Beside> source_run_, written_run_;  // they fill the sides
};

}  // namespace megalith
