#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libcore/config/tokenizer_config.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/finetune/examples.h"
#include "libcore/finetune/finetune_config.h"
#include "libcore/generate/generation_files.h"
#include "libcore/text/chat/chat_template.h"

namespace megalith {

/// The files of records that the options name.
struct DataFiles {
  std::string train, dev;  // dev empty: there is nothing to evaluate on
};
/// kNoInput when there are none.
DataFiles data_files(const TuningDataOptions& options);

/// What the options leave of a record for a model that has so many positions for it; kUsage: more than these.
LengthLimits length_limits(const TuningDataOptions& options, int64_t positions);

/// The tokenizer that the options name, else the model's, whose files then stand in `config`. kUsage:
/// neither.
TokenizerFiles tokenizer_of(TokenizerConfig& config, const ModelSource& model);

/// Reads files of records as a model's tokenizer and chat template render them. Errors as read_records().
class RecordFiles {
 public:
  /// kUsage when the tokenizer is another model's.
  RecordFiles(const TuningDataOptions& options, const ModelSource& model, const TokenizerFiles& files);

  /// What is learned, with a line about it on the log. With `pairs` a record is two answers, which become two
  /// examples that follow each other: the chosen one and the rejected one. kData when nothing is left.
  std::unique_ptr<Examples> examples(const std::string& path, const LengthLimits& limits,
                                     bool pairs = false) const;
  /// What is asked, in order; of `pairs` with the chosen answer. No prompt is without a token.
  std::vector<Question> questions(const std::string& path, const LengthLimits& limits,
                                  bool pairs = false) const;

  const Tokenizer& tokenizer() const { return plain_.tokenizer(); }
  const std::vector<int32_t>& ends() const { return files_.end; }  // ids that end a text

 private:
  PlainTokenizer plain_;
  GenerationFiles files_;
  std::optional<ChatTemplate> chat_;
  RecordOptions records_;
};

}  // namespace megalith
