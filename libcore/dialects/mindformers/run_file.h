#pragma once

#include <optional>
#include <string>

#include "libcore/options/config_file.h"
#include "libcore/options/fields.h"

namespace megalith {

/// Translates a MindFormers run file (`run_distribute.sh TABLE FILE.yaml [0,8] train|predict N`). Keys of the
/// same name are told apart by the maps around them. Training, planning and generating treat keys alike: a
/// key becomes our option if the app has it; a key without effect is added to `ignored`; a key that is not
/// supported and would change the result becomes a problem. Keys that are not MindFormers' are left
/// unchanged, so such a file may also hold our own options. docs/from-mindformers.md lists all keys.
///
/// Its rules: global batch = micro_batch_num * batch_size * data_parallel; total_steps is the number of
/// steps, and without it the number of epochs decides; dataset_dir is a dataset's prefix; the optimizer is
/// sharded unless enable_parallel_optimizer or optimizer_shard is false.
void translate_mindformers(FileTranslation&);
/// Whether the file is MindFormers', in a program that also reads files of other tools.
bool is_of_mindformers(const FileTranslation&);

/// The option `run_mode` of an app that trains or plans; MindFormers' script gives it on the command line.
struct MindFormersRun {
  std::optional<std::string> mode;

  template <class V>
  void fields(V&& v) {
    v("run-mode", mode, "MindFormers' mode: train or finetune.", unlisted());
  }
  void validate(Problems&) const;
};

}  // namespace megalith
