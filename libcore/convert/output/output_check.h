#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "libcore/convert/output/check.h"
#include "libcore/convert/output/conversion.h"
#include "libcore/io/files/placed_files.h"
#include "libcore/threads/beside.h"

namespace megalith {

/// The check of a conversion: both models run on a few tokens. The source's side runs from the start, on its
/// own thread, while the output is written. So does the output's side, if it can follow the writing.
class OutputCheck {
 public:
  explicit OutputCheck(const Conversion& conversion);  // must outlive this
  ~OutputCheck();                                      // stops what is still running
  OutputCheck(const OutputCheck&) = delete;
  OutputCheck& operator=(const OutputCheck&) = delete;

  bool wanted() const { return conversion_.check; }
  /// Logs by how much the logits differ. kInternal if the models are not the same, unless the user asked for
  /// a narrower type (`rounded`), which may change it.
  void compare(const ModelView& written, bool rounded);

  /// Runs the written model. It is opened although its tensors are not written yet: reading waits for them.
  using Follow = std::function<CheckedSide(const CheckRun&)>;
  /// Starts that on a separate thread, if the check is wanted. `files` must outlive this object.
  void follow(PlacedFiles& files, Follow side);
  /// compare() with the side that follow() started.
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
