#pragma once

#include <memory>
#include <string>

#include "libcore/config/pretrain_config.h"
#include "libcore/text/tokenizer.h"
#include "libcore/train/data/data_set.h"

namespace megalith {

/// The texts of a run that reads texts instead of indexed datasets (DataConfig::reads_texts()).
class RunTexts {
 public:
  virtual ~RunTexts() = default;
  /// The sets refer to this object.
  virtual DataSets sets() const = 0;
  /// The hash of all ids in their order: ranks with equal hashes read the same texts.
  virtual std::string hash() const = 0;
};

/// Reads and tokenizes the texts. Sets the number of steps in `config` if --num-epochs was given.
using TextOpener = std::unique_ptr<RunTexts> (*)(PretrainConfig& config, const Tokenizer&);
/// Registers the opener. The source file that reads texts calls this before main(). Returns true.
bool add_text_opener(TextOpener);
/// Calls the opener that was added. kInternal when none was added.
std::unique_ptr<RunTexts> open_texts(PretrainConfig&, const Tokenizer&);

}  // namespace megalith
