#include "libcore/convert/output/output_check.h"

#include <memory>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"

namespace megalith {

OutputCheck::OutputCheck(const Conversion& conversion) : conversion_(conversion) {
  if (wanted())
    source_side_ =
        std::async(std::launch::async, [this] { return checked_side(conversion_.view(), {.stop = &stop_}); });
}

OutputCheck::~OutputCheck() {
  stop_ = true;  // and the futures wait
  if (files_) files_->abandon();
}

void OutputCheck::compare(const ModelView& written, bool rounded) {
  compare_with(checked_side(written, {.threads = kCheckThreads}), rounded);
}

void OutputCheck::compare_with(const CheckedSide& written, bool rounded) {
  const Comparison found = compare_sides(source_side_.get(), written);
  log(text_of(found));
  if (!rounded && found.greatest > kSameModel * found.greatest_logit)
    fail(ErrorKind::kInternal, written.path, ": the written model computes other logits (by up to ",
         format_scientific(found.greatest, 1), ") than ", conversion_.source.path());
}

void OutputCheck::follow(PlacedFiles& files, Follow side) {
  if (!wanted()) return;
  files_ = &files;
  // Made here, so that nothing is given away before the thread runs.
  auto reader = std::make_shared<PlacedFiles::Reader>(files);
  written_side_ = std::async(std::launch::async, [this, side = std::move(side), reader]() mutable {
    const auto ended = std::move(reader);
    return side({.stop = &stop_});
  });
}

void OutputCheck::compare_followed(bool rounded) {
  if (wanted()) compare_with(written_side_.get(), rounded);
}

}  // namespace megalith
