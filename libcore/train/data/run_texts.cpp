#include "libcore/train/data/run_texts.h"

#include "libcore/base/error.h"

namespace megalith {
namespace {

TextOpener& opener() {
  static TextOpener added = nullptr;
  return added;
}

}  // namespace

bool add_text_opener(TextOpener open) {
  opener() = open;
  return true;
}

std::unique_ptr<RunTexts> open_texts(PretrainConfig& config, const Tokenizer& tokenizer) {
  if (!opener()) fail(ErrorKind::kInternal, "--train-data-path: no reader of texts was added");
  return opener()(config, tokenizer);
}

}  // namespace megalith
