#include "apps/generate/mindformers.h"

#include "libcore/base/text.h"

namespace megalith {
namespace {

constexpr auto kOne = IgnoredOption::kOne;

constexpr IgnoredOption kIgnored[] = {
    // context: how the framework runs
    {"mode", kOne},
    {"max_device_memory", kOne},
    {"device_id", kOne},
    {"enable_graph_kernel", kOne},
    {"graph_kernel_flags", kOne},
    {"max_call_depth", kOne},
    {"save_graphs", kOne},
    {"save_graphs_path", kOne},
    // parallel, parallel_config, recompute_config: one process generates, and nothing is differentiated
    {"use_parallel", kOne},
    {"parallel_mode", kOne},
    {"full_batch", kOne},
    {"gradients_mean", kOne},
    {"enable_alltoall", kOne},
    {"enable_parallel_optimizer", kOne},
    {"search_mode", kOne},
    {"strategy_ckpt_save_file", kOne},
    {"data_parallel", kOne},
    {"model_parallel", kOne},
    {"pipeline_stage", kOne},
    {"optimizer_shard", kOne},
    {"micro_batch_num", kOne},
    {"micro_batch_interleave_num", kOne},
    {"vocab_emb_dp", kOne},
    {"gradient_aggregation_group", kOne},
    {"recompute", kOne},
    {"select_recompute", kOne},
    {"parallel_optimizer_comm_recompute", kOne},
    {"mp_comm_recompute", kOne},
    {"recompute_slice_activation", kOne},
    // where training writes, and how it goes on
    {"output_dir", kOne},
    {"auto_trans_ckpt", kOne},
    {"resume_training", kOne},
    {"only_save_strategy", kOne},
};

}  // namespace

std::span<const IgnoredOption> ignored_mindformers_options() {
  return kIgnored;
}

void MindFormersOptions::validate(Problems& problems) const {
  if (run_mode && *run_mode != "predict")
    problems.add("run_mode is ", quote(*run_mode),
                 "; megalith-generate does predict, megalith-pretrain train");
  if (device_target && *device_target != "CPU" && *device_target != "GPU" && *device_target != "Ascend")
    problems.add("device_target is ", quote(*device_target), ", wanted CPU, GPU or Ascend");
}

void MindFormersOptions::apply(GenerateConfig& config, const Options& options) const {
  if (device_target && !options.given("device")) config.run.device = *device_target == "CPU" ? "cpu" : "gpu";
  if (!do_sample || options.on_command_line("temperature")) return;
  if (!*do_sample)
    config.sampling.temperature = 0;
  else if (!options.given("temperature"))
    config.sampling.temperature = 1;
}

}  // namespace megalith
