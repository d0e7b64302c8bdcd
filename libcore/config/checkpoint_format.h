#pragma once

#include <cstdint>
#include <vector>

#include "libcore/options/fields.h"

namespace megalith {

/// A format of a run's checkpoints, a word of --ckpt-format. The file of its CheckpointStore
/// (train/saves/checkpoint_store.h) registers it. The value is its place among the words, which is also the
/// order in which stores are searched; 0 is the format of a run that names none.
enum class CheckpointFormat : int {};

/// What the options and the run need to know about a format.
struct FormatTraits {
  /// The ranks write their parts themselves, so that a copy can be written while training continues. Other
  /// formats are made from ours by the first rank while training waits.
  bool native = false;
  bool tracked = true;  // a tracker names the newest one
  /// Saves are due when first_due + k * interval steps are done. 1: the steps in its names count from 0.
  int64_t first_due = 0;
  bool epoch_ends = false;          // also saved at the end of each epoch if StepNumbering says so, too
  const char* with_dist = nullptr;  // the format that --use-dist-ckpt makes of it; null: they contradict
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
