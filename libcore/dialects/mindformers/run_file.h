#pragma once

#include <optional>
#include <string>

#include "libcore/options/config_file.h"
#include "libcore/options/fields.h"

namespace megalith {

/// Reads a MindFormers run file (`run_distribute.sh TABLE FILE.yaml [0,8] train|predict N`; keys of the same
/// name are told apart by the maps around them). For training, planning and generating alike, a key becomes
/// our option if the app has it; a key without effect is added to `ignored`; a key that would change the
/// result and is not supported causes a complaint. Keys that are not MindFormers' are left unchanged, so such
/// a file may also hold our own options. docs/from-mindformers.md lists all keys.
///
/// Its rules: global batch = micro_batch_num * batch_size * data_parallel; total_steps counts steps, and
/// without it epochs count; dataset_dir is a dataset's prefix; the optimizer is sharded unless
/// enable_parallel_optimizer or optimizer_shard says no.
void translate_mindformers(FileTranslation&);

/// `run_mode` for an app that trains or plans; the script gives it on the command line.
struct MindFormersRun {
  std::optional<std::string> mode;

  template <class V>
  void fields(V&& v) {
    v("run-mode", mode, "MindFormers' mode: train or finetune.", unlisted());
  }
  void validate(Problems&) const;
};

}  // namespace megalith
