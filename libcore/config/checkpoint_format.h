#pragma once

#include <cstdint>
#include <vector>

#include "libcore/options/fields.h"

namespace megalith {

/// A format of a run's checkpoints; each has a word for --ckpt-format. The source file of the format's
/// CheckpointStore (train/saves/checkpoint_store.h) registers it. The value is the format's place among the
/// words. Stores are searched in the order of the places; place 0 is the default format.
enum class CheckpointFormat : int {};

/// What the options and the run need to know about a format.
struct FormatTraits {
  /// The ranks write their parts themselves, so that a copy can be written while training continues. Other
  /// formats are made from ours by the first rank while training waits.
  bool native = false;
  bool tracked = true;  // a tracker file names the newest checkpoint
  /// Saves are due when first_due + k * interval steps are done. 1: the format's file names count steps from
  /// 0.
  int64_t first_due = 0;
  bool epoch_ends = false;          // if StepNumbering also asks for it, each epoch's end is saved
  const char* with_dist = nullptr;  // its name with --use-dist-ckpt; null: they contradict
  const char* refusal = nullptr;    // why it is not written, and what to give instead
};

/// Called before main(). `word` and the traits' texts are literals. kInternal when another format has the
/// word or the place.
CheckpointFormat add_checkpoint_format(int place, const char* word, const FormatTraits&);

/// The registered words, in the order of their places.
std::vector<EnumName<CheckpointFormat>> enum_names(CheckpointFormat);
/// kInternal when no format has the word.
CheckpointFormat checkpoint_format(const char* word);
FormatTraits traits_of(CheckpointFormat);

}  // namespace megalith
