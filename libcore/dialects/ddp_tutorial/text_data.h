#pragma once

#include <optional>

#include "libcore/config/pretrain_config.h"
#include "libcore/dialects/ddp_tutorial/text_windows.h"
#include "libcore/train/data/data_set.h"

namespace megalith {

/// The data of a run on text folders (--train-data-path): read and tokenized when it is made. Sets the steps
/// of `config` where --num-epochs was given. kUsage when an epoch has no whole batch; as read_texts().
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
