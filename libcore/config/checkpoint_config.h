#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libcore/config/checkpoint_format.h"
#include "libcore/options/fields.h"

namespace megalith {

/// What a save first copies to host memory, so that training continues while it is written.
enum class SaveCopy : uint8_t { kNone, kParameters, kAll };

/// Where the state of a run is saved and loaded. Names are Megatron's.
struct CheckpointConfig {
  std::string save, load;
  std::optional<int64_t> save_interval;  // steps between two saves; unset: saves only at the end
  std::optional<int> keep_last;          // number of checkpoints kept in --save; unset: all
  /// Steps between two checkpoints that stay; each save removes the one before it unless that one stays.
  std::optional<int64_t> retain_interval;
  /// Whether to write while training continues. Unset: if memory can hold the copy.
  std::optional<bool> async_save;
  bool overwrite = false;  // whether this run may replace checkpoints that --save already holds
  bool finetune = false;   // load only the parameters and begin at step 0
  bool load_optim = true, load_rng = true, save_optim = true;
  bool override_scheduler = false;  // use the command line's schedule, not the checkpoint's
  bool use_checkpoint_scheduler = false;
  bool use_checkpoint_args = false;  // take the model's and the tokenizer's options from the checkpoint
  bool exit_on_missing = false;
  std::optional<int64_t> number;  // resume from the .pth pair with this number in `save`
  std::optional<int64_t> step;    // load the checkpoint of this step below `load`, not the newest
  std::string load_named_by;      // name of the source that set `load`, for messages; empty: --load itself
  CheckpointFormat format = {};
  bool dist = false;        // --use-dist-ckpt: the format is torch_dist
  std::string dist_format;  // --dist-ckpt-format, from before Megatron-LM had --ckpt-format; empty: not given

  template <class V>
  void fields(V&& v) {
    v("save", save, "Folder for checkpoints.", metavar("DIR"));
    v("load", load,
      "Checkpoints to resume from: ours or Megatron's, or a Hugging Face folder for its weights; an empty "
      "folder starts afresh.",
      metavar("DIR"));
    v("ckpt-format", format,
      "What --save writes: our format, or Megatron's torch; torch_dist: ours, which fits every layout, too; "
      "pth: model_NNNNNN.pth and optimizer_NNNNNN.pth for PyTorch, numbered by saves from 0; fsdp_dtensor is "
      "refused where it is trained.");
    v("use-dist-ckpt", dist, "The same as --ckpt-format torch_dist.");
    v("dist-ckpt-format", dist_format, "The same; zarr is refused.", one_of({"torch_dist", "zarr"}),
      default_text("torch_dist"));
    v("checkpoint", number, "Resume from model_NNNNNN.pth and optimizer_NNNNNN.pth of this number in --save.",
      at_least(0), metavar("N"));
    v("ckpt-step", step, "Load the checkpoint of this step of --load, not the newest one.", at_least(0),
      metavar("N"));
    v("save-interval", save_interval, "Steps between two checkpoints.", at_least(1),
      alias({"save-steps", "save-freq"}), default_text("only at the end"));
    v("keep-last", keep_last,
      "Checkpoints to keep in --save: older ones are removed once a new one is complete.", at_least(1),
      alias({"save-total-limit"}), default_text("all"));
    v("save-retain-interval", retain_interval,
      "Keep the checkpoints whose step is a multiple of this; each save removes the one before it if that is "
      "none of them, once the new one is complete.",
      at_least(1), metavar("N"), default_text("all are kept"));
    v("async-save", async_save,
      "Copy the state and write it while training continues; --no-async-save waits for the disk.",
      default_text("where the machine's memory holds the copy"));
    v("overwrite-output-dir", overwrite,
      "Replace the checkpoints that --save (--output-dir) holds, in place of resuming from the newest; with "
      "an older one to load, those that follow it.");
    v("finetune", finetune, "Load the parameters only, and start at step 0.");
    v("load-optim", load_optim, "Load the optimizer's state.");
    v("load-rng", load_rng, "Continue with the checkpoint's random numbers.");
    v("save-optim", save_optim, "Save the optimizer's state.");
    v("override-opt_param-scheduler", override_scheduler,
      "Use the schedule of the command line, not the checkpoint's.", alias({"override-lr-scheduler"}));
    v("use-checkpoint-opt_param-scheduler", use_checkpoint_scheduler,
      "Use the checkpoint's schedule, and ignore the command line's.",
      alias({"use-checkpoint-lr-scheduler"}));
    v("use-checkpoint-args", use_checkpoint_args,
      "Take the model's shape from the checkpoint; the command line takes precedence.");
    v("exit-on-missing-checkpoint", exit_on_missing, "Stop when --load holds no checkpoint.");
  }
  void finish();  // sets `format` from `dist` and `dist_format`
  void validate(Problems&) const;

 private:
  bool wants_dist() const { return dist || !dist_format.empty(); }
};

extern template std::vector<Field> fields_of<CheckpointConfig>(CheckpointConfig&);

}  // namespace megalith
