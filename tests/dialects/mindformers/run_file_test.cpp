#include "libcore/dialects/mindformers/run_file.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/config/pretrain_config.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/log_lines.h"

namespace megalith {
namespace {

/// The configuration that training derives from a run file, and its messages.
struct Training {
  PretrainConfig config;
  std::string log, error, load_source;
  std::vector<std::string> given_sizes;  // the options of the layout that were given
};

Training train_with(const std::string& path, std::vector<std::string> words = {}) {
  Training out;
  MindFormersRun run;
  Options options("pretrain", "Train.");
  out.config.add_to(options);
  options.add("MindFormers", run).translate(translate_mindformers);
  words.insert(words.begin(), {"--config", path});
  const test::LogLines log;
  try {
    options.read(words);
    options.check();
    out.load_source = options.source("load");
    for (const char* size :
         {"data-parallel-size", "tensor-model-parallel-size", "pipeline-model-parallel-size"})
      if (options.given(size)) out.given_sizes.push_back(size);
  } catch (const Error& error) {
    out.error = error.what();
  }
  out.log = join(log.lines, "\n");
  return out;
}

Training train_on(const std::string& text, const std::vector<std::string>& words = {}) {
  const test::TempDir folder;
  write_file(folder / "run.yaml", text);
  return train_with(folder / "run.yaml", words);
}

/// The shortest run file that can be trained, followed by the lines that a test checks.
std::string small(const std::string& more) {
  return "model:\n  model_config:\n    type: GPT2Config\n    num_layers: 4\n    hidden_size: 64\n    "
         "num_heads: 4\n"
         "    seq_length: 32\n    expand_ratio: 3\nrunner_config:\n  batch_size: 2\nlr_schedule:\n"
         "  learning_rate: 1.e-3\n  total_steps: 10\n" +
         more;
}

// The groups of MindFormers' configs/gpt2/run_gpt2_13b.yaml (r0.8). Some numbers are changed, because a
// default with the same value would hide a mistake.
constexpr const char* kWhole = R"(seed: 7
run_mode: 'train'
output_dir: './output'
load_checkpoint: ""
src_strategy_path_or_dir: ''
auto_trans_ckpt: False
only_save_strategy: False
resume_training: False
context:
  mode: 0
  device_target: "Ascend"
  enable_graph_kernel: False
  graph_kernel_flags: "--disable_expand_ops=Softmax,Dropout"
  max_call_depth: 10000
  max_device_memory: "30GB"
  save_graphs: False
  save_graphs_path: "./graph"
  device_id: 0
remote_save_url: "none"
runner_config:
  epochs: 2
  batch_size: 2
  sink_mode: True
  sink_size: 2
runner_wrapper:
  type: MFTrainOneStepCell
  scale_sense:
    type: DynamicLossScaleUpdateCell
    loss_scale_value: 65536
    scale_factor: 2
    scale_window: 500
  use_clip_grad: True
use_parallel: True
parallel:
  parallel_mode: 1
  gradients_mean: False
  loss_repeated_mean: True
  full_batch: True
  search_mode: "sharding_propagation"
  enable_parallel_optimizer: True
  strategy_ckpt_save_file: "./ckpt_strategy.ckpt"
parallel_config:
  data_parallel: 4
  model_parallel: 2
  pipeline_stage: 4
  use_seq_parallel: False
  micro_batch_num: 12
  vocab_emb_dp: True
  gradient_aggregation_group: 4
micro_batch_interleave_num: 2
moe_config:
  expert_num: 1
  capacity_factor: 1.05
recompute_config:
  recompute: True
  select_recompute: False
  parallel_optimizer_comm_recompute: False
  mp_comm_recompute: True
  recompute_slice_activation: False
auto_tune: True
filepath_prefix: './autotune'
autotune_per_step: 10
profile: False
profile_start_step: 1
profile_stop_step: 10
init_start_profile: True
profile_communication: True
profile_memory: True
trainer:
  type: CausalLanguageModelingTrainer
  model_name: 'gpt2_13b'
do_eval: False
train_dataset: &train_dataset
  data_loader:
    type: MindDataset
    dataset_dir: "data/corpus"
    shuffle: True
  tokenizer:
    type: GPT2Tokenizer
    max_length: 2049
  input_columns: ["input_ids", "attention_mask"]
  num_parallel_workers: 8
  drop_remainder: True
  batch_size: 8
train_dataset_task:
  type: CausalLanguageModelDataset
  dataset_config: *train_dataset
eval_dataset:
  data_loader:
    dataset_dir: ""
    shuffle: False
metric:
  type: PerplexityMetric
model:
  model_config:
    type: GPT2Config
    seq_length: 2048
    vocab_size: 50257
    hidden_size: 5120
    num_layers: 40
    num_heads: 40
    expand_ratio: 4
    hidden_act: "fast_gelu"
    hidden_dropout_rate: 0.05
    attention_dropout_rate: 0.15
    param_init_type: "float16"
    layernorm_compute_type: "float32"
    softmax_compute_type: "float16"
    compute_dtype: "float16"
    checkpoint_name_or_path: ""
    eos_token_id: 50256
    repetition_penalty: 1
    max_decode_length: 2048
    top_k: 5
    top_p: 1
    do_sample: True
    use_past: False
  arch:
    type: GPT2LMHeadModel
lr_schedule:
  type: polynomial
  learning_rate: 0.00005
  lr_end: 0.000001
  warmup_steps: 20
  total_steps: 900
layer_scale: False
layer_decay: 0.65
optimizer:
  type: FusedAdamWeightDecay
  beta1: 0.8
  beta2: 0.95
  eps: 0.00000002
  weight_decay: 0.2
lr_scale: False
lr_scale_factor: 256
callbacks:
  - type: MFLossMonitor
    per_print_times: 3
  - type: CheckpointMointor
    prefix: "gpt2-13b"
    save_checkpoint_steps: 500
    integrated_save: False
  - type: ObsMonitor
eval_callbacks:
  - type: ObsMonitor
processor:
  return_tensors: ms
  tokenizer:
    unk_token: '<|endoftext|>'
    type: GPT2Tokenizer
  type: GPT2Processor
)";

TEST(MindFormers, ObeysOrNamesEveryKeyOfAWholeFile) {
  const Training run = train_on(kWhole);
  ASSERT_EQ(run.error, "");
  const PretrainConfig& c = run.config;
  EXPECT_EQ(c.parallel.data, 4);
  EXPECT_EQ(c.parallel.tensor, 2);
  EXPECT_EQ(c.parallel.pipeline, 4);
  EXPECT_EQ(c.parallel.world, 32);
  EXPECT_EQ(c.parallel.sharding, Sharding::kOptimizer);
  EXPECT_EQ(c.parallel.bucket_count, 4);
  EXPECT_EQ(c.train.micro_batch, 2);
  // The factors are micro_batch_num, interleaved, batch_size and data_parallel.
  EXPECT_EQ(c.train.global_batch, 12 * 2 * 2 * 4);
  EXPECT_EQ(c.train.iters, 900);
  EXPECT_EQ(c.train.recompute, Recompute::kFull);
  EXPECT_TRUE(c.train.fp16);
  EXPECT_EQ(c.train.initial_loss_scale, 65536);
  EXPECT_EQ(c.train.loss_scale_window, 500);
  EXPECT_EQ(c.train.lr, 5e-5);
  EXPECT_EQ(c.train.min_lr, 1e-6);
  EXPECT_EQ(c.train.warmup_iters, 20);
  EXPECT_EQ(c.train.decay, LrDecay::kLinear);
  EXPECT_EQ(c.train.beta1, 0.8);
  EXPECT_EQ(c.train.beta2, 0.95);
  EXPECT_EQ(c.train.adam_eps, 2e-8);
  EXPECT_EQ(c.train.weight_decay, 0.2);
  EXPECT_EQ(c.train.log_interval, 3);
  EXPECT_EQ(c.train.eval_iters, 0);
  EXPECT_EQ(c.train.seed, 7);
  EXPECT_EQ(c.train.device, "gpu");
  EXPECT_EQ(c.model.layers, 40);
  EXPECT_EQ(c.model.hidden, 5120);
  EXPECT_EQ(c.model.heads, 40);
  EXPECT_EQ(c.model.ffn_hidden, 4 * 5120);
  EXPECT_EQ(c.model.activation(), ActivationFunction::kQuickGelu);
  EXPECT_EQ(c.model.seq_length, 2048);
  EXPECT_EQ(c.model.vocab_size, 50257);
  EXPECT_EQ(c.model.hidden_dropout, 0.05);
  EXPECT_EQ(c.model.attention_dropout, 0.15);
  EXPECT_EQ(c.checkpoint.save, "./output");
  EXPECT_EQ(c.checkpoint.save_interval, 500);
  EXPECT_EQ(c.checkpoint.load, "");
  EXPECT_EQ(c.data.data_path, std::vector<std::string>{"data/corpus"});
  for (const char* named :
       {"context", "parallel", "parallel_config.vocab_emb_dp", "processor", "metric",
        "recompute_config.mp_comm_recompute", "eval_dataset", "train_dataset", "callbacks",
        "model.model_config.top_k", "auto_tune", "layer_decay", "remote_save_url"})
    EXPECT_NE((run.log + " ").find(std::string(" ") + named + " "), std::string::npos) << named << run.log;
}

// Checks every spelling of a boolean that both PyYAML and our own options accept.
TEST(MindFormers, ReadsEveryBooleanAsPyYamlDoes) {
  const auto trained = [](const std::string& more) {
    Training run = train_on(small(more));
    EXPECT_EQ(run.error, "") << more;
    return run.config;
  };
  const test::LogLines quiet;
  for (const std::string no : {"no", "off", "False", "0", "NO"}) {
    EXPECT_EQ(trained("runner_wrapper:\n  use_clip_grad: " + no + "\n").train.clip_grad, 0) << no;
    EXPECT_EQ(trained("parallel_config:\n  optimizer_shard: " + no + "\n").parallel.sharding, Sharding::kNone)
        << no;
    EXPECT_EQ(trained("do_eval: " + no + "\n").train.eval_iters, 0) << no;
    EXPECT_EQ(trained("use_parallel: " + no + "\nparallel_config:\n  data_parallel: 8\n").parallel.world, 1)
        << no;
    EXPECT_TRUE(trained("load_checkpoint: dir\nresume_training: " + no + "\n").checkpoint.finetune) << no;
    trained("lr_scale: " + no + "\nlayer_scale: " + no + "\n");
  }
  for (const std::string yes : {"yes", "on", "True", "1"}) {
    EXPECT_EQ(trained("runner_wrapper:\n  use_clip_grad: " + yes + "\n").train.clip_grad, 1) << yes;
    EXPECT_EQ(trained("parallel_config:\n  optimizer_shard: " + yes + "\n").parallel.sharding,
              Sharding::kOptimizer)
        << yes;
    EXPECT_GT(trained("do_eval: " + yes + "\n").train.eval_iters, 0) << yes;
    EXPECT_EQ(trained("use_parallel: " + yes + "\nparallel_config:\n  data_parallel: 8\n").parallel.world, 8)
        << yes;
    EXPECT_FALSE(trained("load_checkpoint: dir\nresume_training: " + yes + "\n").checkpoint.finetune) << yes;
    trained("train_dataset:\n  drop_remainder: " + yes + "\n  data_loader:\n    shuffle: " + yes + "\n");
  }
}

TEST(MindFormers, RefusesWhatIsNoValueOfAKey) {
  const auto error = [](const std::string& more) { return train_on(small(more)).error; };
  EXPECT_NE(error("load_checkpoint: dir\nresume_training: maybe\n")
                .find("run.yaml:15: resume_training is \"maybe\", wanted true or false"),
            std::string::npos);
  for (const char* more :
       {"use_parallel: maybe\n", "do_eval: nope\n", "runner_wrapper:\n  use_clip_grad: 2\n",
        "parallel_config:\n  optimizer_shard: nope\n", "parallel:\n  enable_parallel_optimizer: [no, no]\n"})
    EXPECT_NE(error(more).find("wanted true or false"), std::string::npos) << more;
  EXPECT_NE(error("lr_scale: maybe\n").find("lr_scale is \"maybe\", which is not supported; set it to False"),
            std::string::npos);
  const std::string without_steps = small("").substr(0, small("").find("  total_steps"));
  for (const char* steps : {"4.0", "0", "-2", "some"})
    EXPECT_NE(
        train_on(without_steps + "  total_steps: " + steps + "\nrunner_config:\n  epochs: 1\n")
            .error.find(concat("run.yaml:13: lr_schedule.total_steps is \"", steps,
                               "\", wanted a number of steps, or -1 for those of runner_config.epochs")),
        std::string::npos)
        << steps;
  const Training epochs = train_on(without_steps + "  total_steps: -1\nrunner_config:\n  epochs: 3\n");
  EXPECT_EQ(epochs.error, "");
  EXPECT_EQ(epochs.config.train.epochs, 3);
  const auto llama = [](const std::string& more) {
    return train_on(
               "model:\n  model_config:\n    type: LlamaConfig\n    num_layers: 2\n    num_heads: 2\n"
               "    hidden_size: 64\n    seq_length: 32\n" +
               more +
               "runner_config:\n  batch_size: 1\nlr_schedule:\n  learning_rate: 1.e-4\n  total_steps: 9\n")
        .error;
  };
  EXPECT_NE(llama("    multiple_of: 256.0\n").find("multiple_of is \"256.0\", wanted a number of features"),
            std::string::npos);
  EXPECT_NE(llama("    ffn_dim_multiplier: wide\n").find("ffn_dim_multiplier is \"wide\", wanted a number"),
            std::string::npos);
}

// The names and what they mean: mindformers/modules/activation.py, whose GELU is approximate by default.
TEST(MindFormers, HasTheActivationsOfItsName) {
  using F = ActivationFunction;
  const auto with = [](const std::string& type, const std::string& name) {
    std::string text = small("");
    text.replace(text.find("GPT2Config"), 10, type);
    return train_on(text.replace(text.find("    num_layers"), 0, "    hidden_act: " + name + "\n"));
  };
  for (const auto& [name, function] : {std::pair{"gelu", F::kGeluTanh},
                                       {"fast_gelu", F::kQuickGelu},
                                       {"silu", F::kSilu},
                                       {"relu", F::kRelu}}) {
    const Training run = with("GPT2Config", name);
    EXPECT_EQ(run.error, "");
    EXPECT_EQ(run.config.model.activation(), function) << name;
    EXPECT_FALSE(run.config.model.swiglu) << name;
    EXPECT_EQ(run.log.find("hidden_act"), std::string::npos) << run.log;
  }
  EXPECT_EQ(train_on(small("")).config.model.activation(), F::kGeluTanh);
  EXPECT_TRUE(with("LlamaConfig", "silu").config.model.swiglu);
  EXPECT_NE(with("GPT2Config", "mish")
                .error.find("run.yaml:4: model.model_config.hidden_act is \"mish\", "
                            "wanted gelu, fast_gelu, silu or relu"),
            std::string::npos);
  EXPECT_NE(with("LlamaConfig", "gelu").error.find("hidden_act is \"gelu\", wanted silu"), std::string::npos);
}

// MindSpore has a type int8, but training does not support it.
TEST(MindFormers, ComputesInAKnownType) {
  const auto in = [](const std::string& type, const std::vector<std::string>& words = {}) {
    std::string text = small("");
    return train_on(text.replace(text.find("    num_layers"), 0, "    compute_dtype: " + type + "\n"), words);
  };
  for (const char* type : {"float16", "fp16", "Float16"}) EXPECT_TRUE(in(type).config.train.fp16) << type;
  for (const char* type : {"bfloat16", "bf16"}) EXPECT_TRUE(in(type).config.train.bf16) << type;
  for (const char* type : {"float32", "fp32"}) {
    const Training run = in(type);
    EXPECT_EQ(run.error, "");
    EXPECT_FALSE(run.config.train.fp16 || run.config.train.bf16) << type;
  }
  EXPECT_NE(in("int8").error.find("run.yaml:4: model.model_config.compute_dtype is \"int8\", wanted float32, "
                                  "float16 or bfloat16"),
            std::string::npos);
}

// In MindFormers' configs/gpt2/run_gpt2_lora.yaml, pet_config is inside the model's group.
TEST(MindFormers, NamesTheToolThatTrainsAdapters) {
  std::string text = small("");
  const std::string lora =
      "    pet_config:\n      pet_type: lora\n      lora_rank: 8\n      lora_alpha: 16\n"
      "      lora_dropout: 0.1\n      target_modules: '.*dense1|.*dense3'\n";
  text.insert(text.find("    num_layers"), lora);
  const std::string error = train_on(text).error;
  EXPECT_TRUE(error.ends_with(
      "run.yaml:5: model.model_config.pet_config.pet_type is \"lora\", which is not "
      "supported; megalith-finetune --config FILE trains adapters of LoRA, with --model, --data "
      "and --output-dir where the file names no folders of this machine"))
      << error;
  EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  EXPECT_NE(train_on(small("pet_config:\n  pet_type: lora\n")).error.find("megalith-finetune --config FILE"),
            std::string::npos);
}

// Some keys have a meaning only together with other keys. If the other keys are missing, the log names them
// as ignored.
TEST(MindFormers, NamesWhatHasNoEffectInThisFile) {
  const Training run = train_on(small(
      "resume_training: False\noptimizer:\n  type: AdamW\n  learning_rate: 1.e-5\n"
      "runner_wrapper:\n  scale_sense:\n    type: DynamicLossScaleUpdateCell\n    loss_scale_value: 4096\n"));
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.config.train.lr, 1e-3);
  EXPECT_EQ(run.log, "ignored, no effect here: optimizer (except type) resume_training runner_wrapper");
}

TEST(MindFormers, GiveWayToTheCommandLine) {
  std::string text = small("parallel_config:\n  micro_batch_num: 3\n  data_parallel: 1\n");
  text.insert(text.find("    num_layers"), "    compute_dtype: float16\n");
  text += "runner_wrapper:\n  scale_sense:\n    loss_scale_value: 65536\n";
  const Training run = train_on(text, {"--global-batch-size", "8", "--bf16", "--num-epochs", "2"});
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.config.train.global_batch, 8);
  EXPECT_TRUE(run.config.train.bf16);
  EXPECT_FALSE(run.config.train.fp16);
  EXPECT_EQ(run.config.train.epochs, 2);
  for (const char* line :
       {"--global-batch-size on the command line comes before --gradient-accumulation-steps 3 (",
        "run.yaml:16: parallel_config.micro_batch_num)",
        "--bf16 on the command line comes before --fp16 true (",
        "run.yaml:4: model.model_config.compute_dtype)", "before --initial-loss-scale 65536 (",
        "before --train-iters 10 ("})
    EXPECT_NE(run.log.find(line), std::string::npos) << line << "\n" << run.log;
  // A value of the file contradicts the command line, but through another option: the message names the
  // value's place.
  const std::string error = train_on(text, {"--nproc", "2"}).error;
  EXPECT_NE(error.find("run.yaml:17: parallel_config.data_parallel gives --data-parallel-size"),
            std::string::npos)
      << error;
}

// MindFormers' docs say: "-1 means no step end eval".
TEST(MindFormers, EvaluatesByStepsUnlessTheirIntervalIsBelowOne) {
  const Training often = train_on(small("do_eval: True\neval_step_interval: 4\n"));
  EXPECT_EQ(often.error, "");
  EXPECT_EQ(often.config.train.eval_interval, 4);
  EXPECT_GT(often.config.train.eval_iters, 0);
  const Training never = train_on(small("do_eval: True\neval_step_interval: -1\neval_epoch_interval: 50\n"));
  EXPECT_EQ(never.error, "");
  EXPECT_EQ(never.config.train.eval_iters, 0);
  EXPECT_NE(never.log.find("eval_step_interval -1: no evaluation"), std::string::npos) << never.log;
  EXPECT_NE(train_on(small("eval_step_interval: some\n")).error.find("eval-interval \"some\""),
            std::string::npos);
}

TEST(MindFormers, NamesAGroupButForWhatIsObeyedOfIt) {
  const std::string log = train_on(kWhole).log;
  for (const char* part : {"context (except device_target)", "runner_config (except batch_size)",
                           "callbacks (except per_print_times, save_checkpoint_steps)",
                           "train_dataset (except data_loader.dataset_dir)"})
    EXPECT_NE(log.find(part), std::string::npos) << part << "\n" << log;
  // Without a number of steps, the number of epochs decides.
  const Training epochs = train_on(
      "model:\n  model_config:\n    type: GPT2Config\n    num_layers: 4\n    hidden_size: 64\n    num_heads: "
      "4\n"
      "    seq_length: 32\nrunner_config:\n  batch_size: 2\n  epochs: 3\n  sink_mode: True\n"
      "lr_schedule:\n  learning_rate: 1.e-3\n");
  EXPECT_EQ(epochs.error, "");
  EXPECT_EQ(epochs.log, "ignored, no effect here: runner_config (except batch_size, epochs)");
}

// mindformers/core/callback/callback.py: MFLossMonitor's per_print_times is 1 unless given.
TEST(MindFormers, PrintsEachStepForTheLossMonitor) {
  const Training each = train_on(small("callbacks:\n  - type: MFLossMonitor\n  - type: ObsMonitor\n"));
  EXPECT_EQ(each.error, "");
  EXPECT_EQ(each.config.train.log_interval, 1);
  EXPECT_EQ(train_on(small("callbacks:\n  - type: MFLossMonitor\n    per_print_times: 4\n"))
                .config.train.log_interval,
            4);
  EXPECT_EQ(train_on(small("callbacks:\n  - type: ObsMonitor\n")).config.train.log_interval,
            TrainConfig().log_interval);
}

// configs/llama2 of MindFormers: the factor counts only with an extend_method, and a list may be empty.
TEST(MindFormers, TakesAFactorWithoutAMethodAndEmptyLists) {
  std::string text = small("eval_callbacks: []\ncallbacks: []\n");
  text.insert(text.find("    num_layers"), "    scaling_factor: 1.0\n    extend_method: \"None\"\n");
  const Training training = train_on(text);
  EXPECT_EQ(training.error, "");
  for (const char* named : {"eval_callbacks", "model.model_config.scaling_factor"})
    EXPECT_NE(training.log.find(named), std::string::npos) << training.log;
}

TEST(MindFormers, MayHoldOurOwnOptions) {
  const Training run = train_on(small("parallel:\n  tensor-model-parallel-size: 2\nsplit: 8,1,1\n"));
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.config.parallel.tensor, 2);
  EXPECT_EQ(run.config.data.split, "8,1,1");
  EXPECT_EQ(run.config.model.ffn_hidden, 192);
}

TEST(MindFormers, NamesWhatItCannotDoWithFileAndLine) {
  const auto error = [](const std::string& more) { return train_on(small(more)).error; };
  EXPECT_NE(error("parallel:\n  parallel_mode: 2\n").find("run.yaml:15: parallel.parallel_mode is \"2\""),
            std::string::npos);
  EXPECT_NE(error("parallel_config:\n  data_paralel: 2\n").find("unknown option \"data_paralel\""),
            std::string::npos);
  EXPECT_NE(error("moe_config:\n  expert_num: 8\n").find("moe_config.expert_num is \"8\""),
            std::string::npos);
  EXPECT_NE(error("parallel:\n  parallel_mode: 0\nparallel_config:\n  model_parallel: 2\n")
                .find("contradicts parallel_mode 0"),
            std::string::npos);
  EXPECT_NE(error("parallel_config:\n  micro_batch_num: some\n").find("micro_batch_num is \"some\""),
            std::string::npos);
  EXPECT_NE(error("context:\n  device_target: TPU\n").find("wanted CPU, GPU or Ascend"), std::string::npos);
  EXPECT_NE(
      error("context:\n  max_device_memory: \"1KB\"\n")
          .find("run.yaml:15: context.max_device_memory is \"1KB\", wanted gigabytes, such as \"31GB\""),
      std::string::npos);
  EXPECT_NE(
      error("train_dataset:\n  data_loader:\n    shuffle: False\n")
          .find("train_dataset.data_loader.shuffle is \"False\", which is not supported; set it to True"),
      std::string::npos);
  EXPECT_NE(error("run_mode: predict\n").find("megalith-generate"), std::string::npos);
}

TEST(MindFormers, ShardsNothingWhereUseParallelIsFalse) {
  const Training run = train_on(small("use_parallel: False\nparallel_config:\n  data_parallel: 8\n"));
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.config.parallel.world, 1);
  EXPECT_EQ(run.given_sizes.size(), 3u);  // the sizes of the layout are given, as a plan needs
  EXPECT_NE(run.log.find("parallel_config.data_parallel"), std::string::npos) << run.log;
  const std::string error = train_on(small("use_parallel: False\n"), {"--nproc", "2"}).error;
  EXPECT_NE(error.find("is not the number of ranks, 2"), std::string::npos) << error;
  EXPECT_NE(error.find("run.yaml:14: use_parallel gives "), std::string::npos) << error;
}

TEST(MindFormers, ShardsUnlessEitherKeySaysNo) {
  const auto sharding = [](const char* whole, const char* own) {
    return train_on(small(concat("parallel:\n  enable_parallel_optimizer: ", whole,
                                 "\nparallel_config:\n  optimizer_shard: ", own, "\n")))
        .config.parallel.sharding;
  };
  EXPECT_EQ(sharding("True", "True"), Sharding::kOptimizer);
  EXPECT_EQ(sharding("True", "False"), Sharding::kNone);
  EXPECT_EQ(sharding("False", "True"), Sharding::kNone);
}

// Two keys of a file may set one option: the more specific one counts.
TEST(MindFormers, TakesTheMoreSpecificOfTwoKeys) {
  const Training run =
      train_on(small("runner_wrapper:\n  max_grad_norm: 1.5\n  use_clip_grad: False\n"
                     "optimizer:\n  type: AdamW\n  beta1: 0.5\n  betas: [0.8, 0.9]\n"));
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.config.train.clip_grad, 0);
  EXPECT_EQ(run.config.train.beta1, 0.8);
  const Training twice =
      train_on(small("runner_wrapper:\n  max_grad_norm: 1.5\n  use_clip_grad: False\nclip-grad: 2\n"));
  EXPECT_NE(twice.error.find("\"clip-grad\" is already set"), std::string::npos) << twice.error;
}

TEST(MindFormers, CountsContextRanksAsRanks) {
  const std::string ascend = "context:\n  device_target: Ascend\nparallel_config:\n  context_parallel: 2\n";
  EXPECT_EQ(train_on(small(ascend)).config.parallel.context, 2);
  EXPECT_NE(
      train_on(small(ascend + "parallel:\n  parallel_mode: 0\n")).error.find("contradicts parallel_mode 0"),
      std::string::npos);
}

TEST(MindFormers, TrainsOnGpusWhereTheFileDoesNotNameTheCpu) {
  for (const char* ranks : {"", "parallel_config:\n  data_parallel: 4\n"}) {
    const auto device = [&](const std::string& target) {
      return train_on(small("context:\n  device_target: " + target + "\n" + ranks)).config.train.device;
    };
    EXPECT_EQ(device("Ascend"), "gpu") << ranks;
    EXPECT_EQ(device("GPU"), "gpu") << ranks;
    EXPECT_EQ(device("CPU"), "cpu") << ranks;
  }
}

TEST(MindFormers, BeginsWithWeightsOrResumes) {
  const Training begun = train_on(small("load_checkpoint: dir\n"));
  EXPECT_EQ(begun.config.checkpoint.load, "dir");
  EXPECT_TRUE(begun.config.checkpoint.finetune);
  EXPECT_TRUE(begun.load_source.ends_with("run.yaml:14: load_checkpoint")) << begun.load_source;
  // Without the weights, the run must not start from random values.
  EXPECT_TRUE(begun.config.checkpoint.exit_on_missing);
  EXPECT_FALSE(train_on(small("load_checkpoint: dir\nresume_training: True\n")).config.checkpoint.finetune);
}

// The expected values are LlamaConfig's own defaults, and the widths of the same models at Hugging Face.
TEST(MindFormers, KnowsLlama) {
  const auto llama = [](const std::string& more) {
    return train_on(
               "model:\n  model_config:\n    type: LlamaConfig\n    num_layers: 32\n    num_heads: 32\n"
               "    seq_length: 2048\n" +
               more +
               "runner_config:\n  batch_size: 1\nlr_schedule:\n  learning_rate: 1.e-4\n  total_steps: 9\n")
        .config.model;
  };
  const ModelConfig seven = llama("    hidden_size: 4096\n    multiple_of: 256\n    rms_norm_eps: 1.e-6\n");
  EXPECT_EQ(seven.ffn_hidden, 11008);
  EXPECT_EQ(seven.norm, Normalization::kRmsNorm);
  EXPECT_EQ(seven.position, PositionEmbedding::kRope);
  EXPECT_TRUE(seven.swiglu && seven.untied_head && !seven.linear_bias);
  EXPECT_EQ(seven.norm_epsilon, 1e-6);
  EXPECT_EQ(seven.hidden_dropout, 0);
  const ModelConfig seventy =
      llama("    hidden_size: 8192\n    multiple_of: 4096\n    ffn_dim_multiplier: 1.3\n    n_kv_heads: 8\n");
  EXPECT_EQ(seventy.ffn_hidden, 28672);
  EXPECT_EQ(seventy.kv_heads(), 8);
}

// The models' names state their numbers of parameters; the test counts these with the textbook formula.
TEST(MindFormers, PresetsAreOfTheirSizes) {
  const struct {
    const char* file;
    double billions;
    int ranks;
    int64_t batch;
  } presets[] = {{"gpt2/run_gpt2_124m.yaml", 0.124, 8, 64},
                 {"gpt2/run_gpt2_1.3b.yaml", 1.3, 8, 128},
                 {"gpt2/run_gpt2_13b.yaml", 13, 32, 96},
                 {"gpt2/run_gpt2_52b.yaml", 52, 128, 256},
                 {"llama/run_llama_7b.yaml", 6.7, 8, 128}};
  for (const auto& preset : presets) {
    const Training run = train_with(std::string(MEGALITH_SOURCE_DIR "/share/mindformers/") + preset.file,
                                    {"--train-iters", "10000"});  // takes precedence over the file's epochs
    EXPECT_EQ(run.error, "") << preset.file;
    EXPECT_EQ(run.config.train.iters, 10000);
    const ModelConfig& m = run.config.model;
    const double matrices = 2.0 * (m.swiglu ? 1.5 : 1) * m.ffn_hidden * m.hidden + 4.0 * m.hidden * m.hidden;
    const double tables = (m.untied_head ? 2.0 : 1.0) * static_cast<double>(m.vocab_size) * m.hidden;
    EXPECT_NEAR((m.layers * matrices + tables) / 1e9 / preset.billions, 1, 0.03) << preset.file;
    EXPECT_EQ(run.config.parallel.world, preset.ranks) << preset.file;
    EXPECT_EQ(run.config.train.global_batch, preset.batch) << preset.file;
  }
}

}  // namespace
}  // namespace megalith
