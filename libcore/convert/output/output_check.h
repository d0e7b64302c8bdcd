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
/// The source runs from the start, on its own thread, while the output is written. The output can also run
/// while it is written, if tensors can be read from its unfinished files; see follow().
class OutputCheck {
 public:
  explicit OutputCheck(const Conversion& conversion);  // `conversion` must outlive this object
  ~OutputCheck();                                      // stops what is still running
  OutputCheck(const OutputCheck&) = delete;
  OutputCheck& operator=(const OutputCheck&) = delete;

  bool wanted() const { return conversion_.check; }
  /// Runs the written model and logs by how much the logits differ. Throws kInternal if they differ by more
  /// than rounding errors, unless the user asked for a narrower type (`rounded`).
  void compare(const ModelView& written, bool rounded);

  /// A function that runs the written model. It may open the model before the tensors are written: reading a
  /// tensor then waits until it is written.
  using Follow = std::function<CheckedSide(const CheckRun&)>;
  /// If the check is wanted, starts `side` on a separate thread. `files` must outlive this object.
  void follow(PlacedFiles& files, Follow side);
  /// As compare(), with the run that follow() started.
  void compare_followed(bool rounded);

 private:
  void compare_with(const CheckedSide& written, bool rounded);

  const Conversion& conversion_;
  std::atomic<bool> stop_ = false;
  PlacedFiles* files_ = nullptr;
  CheckedSide source_side_, written_side_;
  std::optional<Beside> source_run_, written_run_;  // these runs fill source_side_ and written_side_
};

}  // namespace megalith
