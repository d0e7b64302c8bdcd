#pragma once

#include <cstdint>
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

/// A file of records, or those of it that are held out for evaluation, or the others.
struct RecordSource {
  enum Part : uint8_t { kAll, kTrained, kHeldOut };
  std::string path;
  Part part = kAll;
};
/// What the options name.
struct DataFiles {
  RecordSource train, dev;  // dev's path empty: there is nothing to evaluate on
};
/// kNoInput when there are none; kUsage when records are to be held out although there are others to evaluate
/// on. Unless something `trains`, those to train on are wanted only where some of them are held out: without
/// them train's path may be empty.
DataFiles data_files(const TuningDataOptions& options, bool trains);

/// Which of `records` are held out: `size` of them, or that share when it is below 1, drawn by `seed`; one at
/// least. kUsage, naming `path`, when nothing is left.
std::vector<bool> held_out(int64_t records, double size, int64_t seed, const std::string& path);

/// What the options leave of a record for a model that has so many positions for it; kUsage: more than these.
LengthLimits length_limits(const TuningDataOptions& options, int64_t positions);

/// The tokenizer that the options name, else the model's with what they say beside the files; the files then
/// stand in `config`. kUsage: neither.
TokenizerFiles tokenizer_of(TokenizerConfig& config, const ModelSource& model);

/// Reads files of records as a model's tokenizer and chat template render them. Errors as read_records().
class RecordFiles {
 public:
  /// `seed` draws what is held out. kUsage when the tokenizer is another model's. The options must outlive
  /// it.
  RecordFiles(const TuningDataOptions& options, const ModelSource& model, const TokenizerFiles& files,
              int64_t seed);
  RecordFiles(const RecordFiles&) = delete;  // records_ calls it
  RecordFiles& operator=(const RecordFiles&) = delete;

  /// What is learned, with a line about it on the log. With `pairs` a record is two answers, which become two
  /// examples that follow each other: the chosen one and the rejected one. kData when nothing is left.
  std::unique_ptr<Examples> examples(const RecordSource& source, const LengthLimits& limits,
                                     bool pairs = false) const;
  /// What is asked, in order; of `pairs` with the chosen answer. No prompt is without a token.
  std::vector<Question> questions(const RecordSource& source, const LengthLimits& limits,
                                  bool pairs = false) const;

  const Tokenizer& tokenizer() const { return plain_.tokenizer(); }
  /// Ids that end a text: --eod-token's, else the model's own. The first one ends the answers that are
  /// learned.
  const std::vector<int32_t>& ends() const { return files_.end; }

 private:
  RecordFiles(const TuningDataOptions& options, const ModelSource& model, const TokenizerFiles& files,
              std::unique_ptr<Tokenizer> tokenizer, int64_t seed);
  /// Calls `take` with each record of the source: read by read_records() or read_pairs().
  template <class R, class Read, class Take>
  void each(const RecordSource& source, Read&& read, Take&& take) const;
  template <class Take>
  void each_record(const RecordSource& source, Take&& take) const;
  template <class Take>
  void each_pair(const RecordSource& source, Take&& take) const;

  const TuningDataOptions& options_;
  int64_t seed_;
  GenerationFiles files_;
  PlainTokenizer plain_;
  std::optional<ChatTemplate> chat_;
  RecordOptions records_;
};

}  // namespace megalith
