#pragma once

#include <optional>

#include "libcore/config/pretrain_config.h"
#include "libcore/dialects/ddp_tutorial/text_windows.h"
#include "libcore/train/data/data_set.h"

namespace megalith {

/// The data of a run on text folders (--train-data-path): read and tokenized by the constructor. Sets the
/// number of steps in `config` if --num-epochs was given. kUsage when an epoch has no full batch; otherwise
/// throws like read_texts().
class TextData {
 public:
  TextData(PretrainConfig& config, const Tokenizer&);
  /// They refer to this object.
  DataSets sets() const;

 private:
  TextWindows train_;
  std::optional<TextWindows> valid_;
};

}  // namespace megalith
