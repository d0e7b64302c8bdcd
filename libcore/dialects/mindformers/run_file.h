#pragma once

#include <optional>
#include <string>

#include "libcore/options/config_file.h"
#include "libcore/options/fields.h"

namespace megalith {

/// Reads a MindFormers run file (`run_distribute.sh TABLE FILE.yaml [0,8] train|predict N`; its keys are told
/// apart by the maps around them). What a key means becomes our option, in training, planning and generating
/// alike, as far as the app has it; what changes nothing here goes to `ignored`; what would change the result
/// and cannot be done is a complaint. Keys that are not MindFormers' are left, so that such a file may hold
/// our own options, too. docs/from-mindformers.md lists all of them.
///
/// Its rules: global batch = micro_batch_num * batch_size * data_parallel; total_steps are steps, and without
/// them epochs count; dataset_dir is a dataset's prefix; the optimizer is sharded unless
/// enable_parallel_optimizer or optimizer_shard says no.
void translate_mindformers(FileTranslation&);

/// `run_mode` of an app that trains or plans; the script gives it on the command line.
struct MindFormersRun {
  std::optional<std::string> mode;

  template <class V>
  void fields(V&& v) {
    v("run-mode", mode, "MindFormers' mode: train or finetune.", unlisted());
  }
  void validate(Problems&) const;
};

}  // namespace megalith
