#pragma once

#include <cstdint>
#include <vector>

#include "libcore/options/fields.h"

namespace megalith {

/// A format of a run's checkpoints, which --ckpt-format selects by a word. The source file of the format's
/// CheckpointStore (train/saves/checkpoint_store.h) registers the format with its word and its place, a
/// number that is also the enumerator's value. --help lists the words, and a run tries the stores, in the
/// order of the places; the format at place 0 is the default.
enum class CheckpointFormat : int {};

/// What the options and the run need to know about a format.
struct FormatTraits {
  /// Whether each rank writes its own part of a checkpoint, so that a copy can be written while training
  /// continues. In other formats the first rank converts a checkpoint from ours while training waits.
  bool native = false;
  bool tracked = true;  // whether a tracker file names the newest checkpoint
  /// The format that --use-dist-ckpt selects in place of this one; null: the option contradicts this format.
  const char* with_dist = nullptr;
  /// Why this format is refused, and which one to give instead; null: it is supported.
  const char* refusal = nullptr;
};

/// Registers a format before main(). `word` and the texts in the traits must be literals. kInternal when
/// another format has the word or the place.
CheckpointFormat add_checkpoint_format(int place, const char* word, const FormatTraits&);

/// The registered formats and their words, in the order of their places.
std::vector<EnumName<CheckpointFormat>> enum_names(CheckpointFormat);
/// The format with this word; kInternal when there is none.
CheckpointFormat checkpoint_format(const char* word);
FormatTraits traits_of(CheckpointFormat);

}  // namespace megalith
