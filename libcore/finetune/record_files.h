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

/// A file of records, or only those that are held out for evaluation, or only the others.
struct RecordSource {
  enum Part : uint8_t { kAll, kTrained, kHeldOut };
  std::string path;
  Part part = kAll;
};
/// The files that the options name.
struct DataFiles {
  RecordSource train, dev;  // an empty path of dev: there is nothing to evaluate on
};
/// kNoInput if there are none; kUsage if records are to be held out although there are separate ones to
/// evaluate on. If nothing `trains`, training records are needed only if some of them are held out; otherwise
/// train's path may be empty.
DataFiles data_files(const TuningDataOptions& options, bool trains);

/// Which of `records` are held out: `size` of them (or that share, if it is below 1), at least one, drawn by
/// `seed`. kUsage, with `path`, if none are left.
std::vector<bool> held_out(int64_t records, double size, int64_t seed, const std::string& path);

/// The limits that the options set for a model with this many positions; kUsage if they exceed those.
LengthLimits length_limits(const TuningDataOptions& options, int64_t positions);

/// The tokenizer that the options name, or else the model's own, with settings from the options; its files
/// are then entered in `config`. kUsage if there is neither.
TokenizerFiles tokenizer_of(TokenizerConfig& config, const ModelSource& model);

/// Reads files of records as a model's tokenizer and chat template render them. Errors are those of
/// read_records().
class RecordFiles {
 public:
  /// `seed` draws the records that are held out. kUsage if the tokenizer belongs to another model. The
  /// options must outlive this object.
  RecordFiles(const TuningDataOptions& options, const ModelSource& model, const TokenizerFiles& files,
              int64_t seed);
  RecordFiles(const RecordFiles&) = delete;  // records_ calls it
  RecordFiles& operator=(const RecordFiles&) = delete;

  /// The examples to learn, with a line about them in the log. With `pairs` a record is two answers, which
  /// become two consecutive examples: the chosen one and the rejected one. kData if none are left.
  std::unique_ptr<Examples> examples(const RecordSource& source, const LengthLimits& limits,
                                     bool pairs = false) const;
  /// The questions, in order; with `pairs`, each with the chosen answer. Every prompt has at least one token.
  std::vector<Question> questions(const RecordSource& source, const LengthLimits& limits,
                                  bool pairs = false) const;

  const Tokenizer& tokenizer() const { return plain_.tokenizer(); }
  /// The ids that end a text: --eod-token's, else the model's own. The first one ends the answers that are
  /// learned.
  const std::vector<int32_t>& ends() const { return files_.end; }

 private:
  RecordFiles(const TuningDataOptions& options, const ModelSource& model, const TokenizerFiles& files,
              std::unique_ptr<Tokenizer> tokenizer, int64_t seed);
  /// Calls `take` with each record of the source, read by read_records() or read_pairs().
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
