#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "libcore/config/tokenizer_config.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/finetune/examples.h"
#include "libcore/finetune/finetune_config.h"
#include "libcore/generate/sources/generation_files.h"
#include "libcore/text/chat/chat_template.h"

namespace megalith {

/// A file of records, and which of its records to read: all, those held out for evaluation, or the rest.
struct RecordSource {
  enum Part : uint8_t { kAll, kTrained, kHeldOut };
  std::string path;
  Part part = kAll;
};
/// The files that the options name.
struct DataFiles {
  RecordSource train, dev;  // dev.path empty: there is nothing to evaluate on
};
/// Finds the files. kNoInput if there are none; kUsage if records are to be held out although there is a
/// separate file to evaluate on. `trains`: whether the run trains. A run that does not train needs no
/// train.path, unless records of that file are held out.
DataFiles data_files(const TuningDataOptions& options, bool trains);

/// Returns for each of `records` whether it is held out. The number of these is `size` or, if `size` is below
/// 1, this share of all, but at least one; `seed` draws them. kUsage, with `path`, if no records would be
/// left to train on.
std::vector<bool> held_out(int64_t records, double size, int64_t seed, const std::string& path);

/// The limits that the options set for a model with `positions` positions. kUsage if a limit is larger.
LengthLimits length_limits(const TuningDataOptions& options, int64_t positions);

/// The tokenizer that the options name. If they name none, it is the model's own, with settings from the
/// options, and its files are entered in `config`. kUsage if the model has none either.
TokenizerFiles tokenizer_of(TokenizerConfig& config, const ModelSource& model);

/// Reads files of records, and renders and tokenizes the records for a model. Throws what read_records()
/// throws.
class RecordFiles {
 public:
  /// `seed` draws the records that are held out. Warns if the tokenizer lacks a mark of
  /// `options.named_template`. kUsage if the tokenizer belongs to another model. The options must outlive
  /// this object.
  RecordFiles(const TuningDataOptions& options, const ModelSource& model, const TokenizerFiles& files,
              int64_t seed);
  RecordFiles(const RecordFiles&) = delete;  // a callback in records_ refers to this object
  RecordFiles& operator=(const RecordFiles&) = delete;

  /// Returns the examples to learn, and logs a line about them and one with the members that are not read.
  /// With `pairs`, each record has two answers and becomes two successive examples: first the chosen one,
  /// then the rejected one. kData if there are no examples.
  std::unique_ptr<Examples> examples(const RecordSource& source, const LengthLimits& limits,
                                     bool pairs = false) const;
  /// Returns the questions in order; with `pairs`, each with the chosen answer. Every prompt has at least one
  /// token.
  std::vector<Question> questions(const RecordSource& source, const LengthLimits& limits,
                                  bool pairs = false) const;

  const Tokenizer& tokenizer() const { return plain_.tokenizer(); }
  /// The ids that end a text: --eod-token or, without it, the model's own. The first of them ends the answers
  /// that are learned. The end of a message in `options.named_template` is among them.
  const std::vector<int32_t>& ends() const { return files_.end; }

 private:
  RecordFiles(const TuningDataOptions& options, const ModelSource& model, const TokenizerFiles& files,
              std::unique_ptr<Tokenizer> tokenizer, int64_t seed);
  void choose_template();
  /// Calls `take` with each record of the source, read by read_records() or read_pairs(). Returns the names
  /// of the members that are not read, of all records of the file.
  template <class R, class Read, class Take>
  std::set<std::string> each(const RecordSource& source, Read&& read, Take&& take) const;
  template <class Take>
  std::set<std::string> each_record(const RecordSource& source, Take&& take) const;
  template <class Take>
  std::set<std::string> each_pair(const RecordSource& source, Take&& take) const;

  const TuningDataOptions& options_;
  int64_t seed_;
  GenerationFiles files_;
  PlainTokenizer plain_;
  std::optional<ChatTemplate> chat_;
  RecordOptions records_;
};

}  // namespace megalith
