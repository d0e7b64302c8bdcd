#include "libcore/convert/output/output_check.h"

#include <memory>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"

namespace megalith {

OutputCheck::OutputCheck(const Conversion& conversion) : conversion_(conversion) {
  if (wanted())
    source_run_.emplace("the computation of the input's logits",
                        [this] { source_side_ = checked_side(conversion_.view(), {.stop = &stop_}); });
}

OutputCheck::~OutputCheck() {
  stop_ = true;  // the members' destructors then wait for the threads
  if (files_) files_->abandon();
}

void OutputCheck::compare(const ModelView& written, bool rounded) {
  compare_with(checked_side(written, {.threads = kCheckThreads}), rounded);
}

void OutputCheck::compare_with(const CheckedSide& written, bool rounded) {
  source_run_->wait();
  // If a weight is not finite, write_tensors() has already warned of it.
  if (!source_side_.finite && first_not_finite(*conversion_.view().file).empty())
    warn(conversion_.source.path(),
         ": the model computes numbers that are not finite; its weights are too large for their type: it is "
         "damaged, or its training diverged");
  const Comparison found = compare_sides(source_side_, written);
  log(text_of(found));
  if (!rounded && found.max_difference > kSameModel * found.max_logit)
    fail(ErrorKind::kInternal, written.path, ": the written model computes other logits (by up to ",
         format_scientific(found.max_difference, 1), ") than ", conversion_.source.path());
}

void OutputCheck::follow(PlacedFiles& files, Follow side) {
  if (!wanted()) return;
  files_ = &files;
  // The reader is created here, not on the thread, which may start later: from now on, buffers are kept for
  // it.
  auto reader = std::make_shared<PlacedFiles::Reader>(files);
  written_run_.emplace(
      "the computation of the output's logits",
      [this, side = std::move(side), reader]() mutable {
        const auto ended = std::move(reader);
        written_side_ = side({.stop = &stop_});
      },
      Beside::Alone::kFail);  // without a thread it would wait forever for tensors that are not written yet
}

void OutputCheck::compare_followed(bool rounded) {
  if (!wanted()) return;
  written_run_->wait();
  compare_with(written_side_, rounded);
}

}  // namespace megalith
