// 20 steps of fine-tuning small models, compared with transformers and peft
// (tools/golden/make_finetune_goldens.py), on one rank and on several.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/checkpoint/native/params_io.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/finetune/lora.h"
#include "libcore/finetune/memory_tensors.h"
#include "libcore/finetune/prefix_files.h"
#include "libcore/finetune/tuning_data.h"
#include "libcore/json/json.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/parallel/threads/thread_comm.h"
#include "libcore/text/formats/null_tokenizer.h"
#include "libcore/train/objective/preference.h"
#include "libcore/train/schedules/lr.h"
#include "libcore/train/step/memory.h"
#include "libcore/train/step/trainer.h"
#include "tests/train/run/layouts.h"

namespace megalith::test {
namespace {

const std::string kFolder = MEGALITH_SOURCE_DIR "/tests/finetune/goldens";
constexpr int64_t kSteps = 20, kBatch = 4, kLength = 24;
// The tolerance of issue 22, for 20 steps in fp32 without dropout, whose sums are in another order.
constexpr double kTolerance = 1e-4;

/// The figures of the run with torch.
struct Golden {
  explicit Golden(const std::string& family, const std::string& method)
      : json(Json::load(kFolder + "/" + family + ".json")["methods"][method]) {}
  Json json;
};

/// The samples of a file as examples: ids of a NullTokenizer, including the end token.
Examples examples(const std::string& file = "samples.json") {
  const PlainTokenizer numbers(std::make_unique<NullTokenizer>(61));
  Examples out;
  const Json samples = Json::load(kFolder + "/" + file);
  for (const Json& sample : samples.as_array()) {
    std::string question, answer;
    const auto& ids = sample["ids"].as_array();
    for (size_t i = 0; i < ids.size(); ++i) {
      std::string& text = static_cast<int64_t>(i) < sample["question"].as_int() ? question : answer;
      text += (text.empty() ? "" : " ") + std::to_string(ids[i].as_int());
    }
    out.add({.segments = {{question, false}, {answer, true}}, .rendered = true, .where = "x"}, numbers, {});
  }
  return out;
}

struct Case {
  std::string family, method;
  Layout layout = {"one"};
  bool packed = false;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.family << " " << c.method << " " << c.layout.name;
}

RunShape shape_of(const Case& c, const ModelSource& model, double lr) {
  PretrainConfig config;
  config.model = model.config();
  config.model.seq_length = kLength;
  config.model.attention_dropout = config.model.hidden_dropout = 0;
  config.train.micro_batch = c.layout.data > 1 || c.layout.pipeline > 1 ? 1 : 4;
  config.train.global_batch = kBatch;
  config.train.iters = kSteps;
  config.train.lr = lr;
  config.train.warmup_iters = 2;
  config.train.weight_decay = 0.01;
  config.train.threads = 1;
  config = shared(config, c.layout);
  RunShape run{config.model, config.parallel, config.train};
  run.samples.short_ones = true;
  run.samples.attention_starts = run.samples.position_starts = c.packed;
  return run;
}

struct Curve {
  std::vector<double> losses, norms;
  double after = 0;
};

/// The weights with which a run begins, and what it learns from.
struct Begin {
  const TensorFile& base;
  const TensorFile* adapters;  // initial adapters; null: there are none, or the plan declares their values
  const Examples* pairs = nullptr;  // null: the run learns answers, not preferences
};

Curve tune(const RunShape& run, const Begin& begin, const SampleSource& source) {
  Curve curve;
  std::mutex mutex;
  run_thread_ranks(run.parallel.world, {}, [&](Communicator& world) {
    set_cpu_threads(1);
    const std::unique_ptr<Backend> backend = make_cpu_backend();
    Trainer trainer(run, *backend, world);
    load_params(begin.base, trainer.params(), trainer.stream(), ParamSource::kValues,
                run.tuning.frozen ? ParamChoice::kFrozen : ParamChoice::kAll);
    if (begin.pairs)
      trainer.set_judge(Preference(
          {.beta = 0.3}, {in_order(*begin.pairs, nullptr), begin.pairs->size()},
          [&](const SampleSource& all, int64_t first) { return trainer.sample_losses(all, first); }));
    if (begin.adapters)
      load_params(*begin.adapters, trainer.params(), trainer.stream(), ParamSource::kValues,
                  ParamChoice::kTrained);
    trainer.optimizer().take_values(trainer.stream());
    const LrSchedule schedule = make_lr_schedule(run.train);
    Curve mine;
    for (int64_t k = 0; k < kSteps; ++k) {
      const Trainer::StepResult result = trainer.step(source, k * kBatch, schedule.at(k * kBatch));
      mine.losses.push_back(result.loss);
      mine.norms.push_back(result.grad_norm);
    }
    mine.after = trainer.evaluate(source, 0);
    trainer.check_memory();
    const std::lock_guard lock(mutex);
    if (world.rank() == 0) curve = mine;
  });
  return curve;
}

void expect_golden(const Case& c) {
  const Golden golden(c.family, c.method);
  const ModelSource model(kFolder + "/" + c.family);
  RunShape run = shape_of(c, model, golden.json["lr"].as_double());
  const bool pairs = c.method.starts_with("dpo"),
             begins_with_lora = c.method == "dpo-lora" || c.method == "loraplus";
  std::unique_ptr<Adapter> adapter;
  std::unique_ptr<TensorFile> adapters;
  if (!c.method.ends_with("full"))
    adapter =
        std::make_unique<Adapter>(concat(kFolder, "/", c.family, "-", begins_with_lora ? "lora" : c.method));
  if (c.method == "prefix") {
    run.tuning = prefix_plan(5);
    adapters = prefix_params(*adapter, model.config());
  } else if (adapter) {
    run.tuning = lora_plan(model.config(), settings_of(*adapter, model.config()));
    adapters = adapter_params(*adapter, model.config(), run.tuning);
    if (c.method == "loraplus") run.tuning.rate_of_b = 16;
  }
  const Examples all = examples(pairs ? "pairs.json" : "samples.json");
  const TuningData data(all, one_by_one(all), {.step = kBatch, .shuffle = false, .group = pairs ? 2 : 1});
  const Curve curve = tune(run, {model.tensors(), adapters.get(), pairs ? &all : nullptr}, data.source());
  const auto& losses = golden.json["losses"].as_array();
  const auto& norms = golden.json["grad_norms"].as_array();
  double worst_loss = 0, worst_norm = 0;
  for (size_t k = 0; k < losses.size(); ++k) {
    worst_loss = std::max(worst_loss, std::abs(curve.losses[k] / losses[k].as_double() - 1));
    worst_norm = std::max(worst_norm, std::abs(curve.norms[k] / norms[k].as_double() - 1));
  }
  EXPECT_LT(worst_loss, kTolerance);
  EXPECT_LT(worst_norm, 10 * kTolerance);
  EXPECT_NEAR(curve.after / golden.json["after"].as_double(), 1, kTolerance);
  EXPECT_LT(golden.json["after"].as_double(), losses.front().as_double());  // the run has learned something
}

class TuningParity : public testing::TestWithParam<Case> {};

std::vector<Case> one_rank_cases() {
  std::vector<Case> cases;
  for (const char* family : {"gpt2", "llama", "qwen2", "qwen3", "phi3", "gpt_neox"})
    for (const char* method : {"full", "lora", "rslora", "prefix", "loraplus", "dpo-full", "dpo-lora"})
      cases.push_back({family, method});
  return cases;
}
std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.family + "_" + info.param.method + "_" + info.param.layout.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(OneRank, TuningParity, testing::ValuesIn(one_rank_cases()), name_of_case);

std::vector<Case> layout_cases() {
  const std::vector<Layout> layouts = {
      {.name = "tp2", .tensor = 2},
      {.name = "tp2_sp_full", .tensor = 2, .sequence = true, .recompute = Recompute::kFull},
      {.name = "pp2", .pipeline = 2},
      {.name = "dp2_zero1", .data = 2, .sharding = Sharding::kOptimizer},
      {.name = "dp2_zero2", .data = 2, .sharding = Sharding::kGradients},
      {.name = "tp2_pp2", .tensor = 2, .pipeline = 2},
      {.name = "cp2", .context = 2},
  };
  std::vector<Case> cases;
  for (const char* family : {"gpt2", "llama", "qwen2", "qwen3"})
    for (const Layout& layout : layouts)
      for (const char* method : {"lora", "rslora", "full", "prefix", "dpo-lora", "dpo-full", "loraplus"})
        // Context parallelism does not work with prefixes; without adapters it is tested in pretraining.
        if (layout.context == 1 || std::string_view(method).ends_with("lora"))
          cases.push_back({family, method, layout});
  // What these add is how adapters of joined layers are divided.
  for (const char* family : {"phi3", "gpt_neox"})
    for (const char* method : {"lora", "full"})
      cases.push_back({family, method, {.name = "tp2_pp2", .tensor = 2, .pipeline = 2}});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Shared, TuningParity, testing::ValuesIn(layout_cases()), name_of_case);

TEST_P(TuningParity, FollowsPeftFor20Steps) {
  expect_golden(GetParam());
}

/// The model's tensors in memory, with the linear layers' matrices rounded as QuantizeRows rounds them (see
/// ops/project_test.cpp).
MemoryTensors rounded(const ModelSource& model) {
  MemoryTensors out("rounded");
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Stream stream = backend->make_stream();
  for (const StoredTensor& tensor : model.tensors().tensors()) {
    const Shape shape = tensor.shape();
    std::vector<float> values = read_whole(model.tensors(), tensor.name, shape);
    if (tensor.name.find(".linear_") != std::string::npos && tensor.name.ends_with(".weight")) {
      const Shape matrix{shape.rows(), shape.back()};
      std::vector<int8_t> q(values.size());
      std::vector<float> scales(static_cast<size_t>(matrix[0]));
      run(stream, QuantizeRows{.q = View{q.data(), DType::kI8, matrix},
                               .scales = View{scales.data(), DType::kF32, {matrix[0]}},
                               .w = ConstView{values.data(), DType::kF32, matrix}});
      stream.synchronize();
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(q[i]) * scales[i / static_cast<size_t>(matrix[1])];
    }
    out.put(tensor.name, shape, std::move(values));
  }
  return out;
}

// On one rank QLoRA equals LoRA over the base rounded to 8 bits, bit for bit. If ranks share the columns of a
// row, they must also use one scale for the row.
TEST(TuningInt8, IsLoraOverTheRoundedBase) {
  for (const char* family : {"gpt2", "llama"}) {
    const ModelSource model(kFolder + "/" + family);
    const Adapter adapter(concat(kFolder, "/", family, "-lora"));
    const TuningPlan plan = lora_plan(model.config(), settings_of(adapter, model.config()));
    const std::unique_ptr<TensorFile> adapters = adapter_params(adapter, model.config(), plan);
    const MemoryTensors base = rounded(model);
    const Examples all = examples();
    const TuningData data(all, one_by_one(all), {.step = kBatch, .shuffle = false});
    bool bf16 = false;
    const auto curve_of = [&](const TensorFile& tensors, bool int8, const Layout& layout) {
      RunShape run = shape_of({family, "lora", layout}, model, 2e-2);
      run.train.bf16 = bf16;
      run.tuning = plan;
      run.tuning.int8 = int8;
      return tune(run, {tensors, adapters.get()}, data.source());
    };
    const Curve wanted = curve_of(base, false, {"one"}), narrow = curve_of(model.tensors(), true, {"one"});
    EXPECT_EQ(narrow.losses, wanted.losses) << family;
    EXPECT_EQ(narrow.norms, wanted.norms) << family;
    EXPECT_NE(narrow.losses, curve_of(model.tensors(), false, {"one"}).losses) << family;
    bf16 = true;  // the 8-bit values are rounded to bf16 again, as is the rounded base when it is read
    EXPECT_EQ(curve_of(model.tensors(), true, {"one"}).losses, curve_of(base, false, {"one"}).losses)
        << family;
    bf16 = false;
    for (const Layout& layout :
         {Layout{.name = "tp2", .tensor = 2}, Layout{.name = "tp2_pp2", .tensor = 2, .pipeline = 2}}) {
      const Curve shared = curve_of(model.tensors(), true, layout);
      for (size_t k = 0; k < wanted.losses.size(); ++k)
        EXPECT_NEAR(shared.losses[k] / wanted.losses[k], 1, 1e-5) << family << " " << layout.name << " " << k;
    }
  }
}

// With frozen weights the estimate must count only the adapters' gradients and moments: 4 and 8 bytes per
// number, plus the gaps before the next tensor, bucket or rank's share.
TEST(TuningMemory, FrozenWeightsHaveNeitherGradientsNorMoments) {
  const ModelSource model(kFolder + "/llama");
  RunShape run = shape_of({"llama", "lora"}, model, 1e-2);
  const RunMemory full = run_memory(run);
  run.tuning = lora_plan(model.config(), {.rank = 4, .modules = {"all-linear"}});
  const RunMemory lora = run_memory(run);
  // Inputs x outputs in a layer: q, o 16 x 16, k, v 16 x 8, gate, up 16 x 32, down 32 x 16. An adapter has
  // rank * (inputs + outputs) numbers.
  const int64_t numbers = int64_t{4} * 4 * (2 * 32 + 2 * 24 + 3 * 48), matrices = 4 * 7 * 2;
  EXPECT_EQ(lora.parameters - full.parameters, numbers);
  const auto near = [&](size_t bytes, int64_t wanted) {
    EXPECT_GE(static_cast<int64_t>(bytes), wanted);
    EXPECT_LE(static_cast<int64_t>(bytes), wanted + matrices * 256 + 512);
  };
  near(lora.grads, 4 * numbers);
  near(lora.optimizer, 8 * numbers);
  EXPECT_GE(static_cast<int64_t>(full.grads), 4 * full.parameters);
}

// Activations are not kept if only a frozen layer would read them in the backward pass. Without an adapter on
// "down", that is its input, [rows, ffn] per layer. Without adapters on query, key and value, it is the input
// of the first norm.
TEST(TuningMemory, ActivationsAreKeptWhereAGradientPasses) {
  const ModelSource model(kFolder + "/llama");
  RunShape run = shape_of({"llama", "lora"}, model, 1e-2);
  const auto activations = [&](const std::vector<std::string>& modules) {
    run.tuning = lora_plan(model.config(), {.rank = 4, .modules = modules});
    return static_cast<int64_t>(run_memory(run).activations());
  };
  // Rows of a micro-batch in 4 layers.
  const int64_t rows = 4 * kLength * 4, all = activations({"all-linear"});
  const ModelConfig& shape = model.config();
  EXPECT_EQ(all - activations({"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj"}),
            rows * shape.ffn_hidden * 4);
  EXPECT_EQ(all - activations({"o_proj", "gate_proj", "up_proj", "down_proj"}), rows * shape.hidden * 4);
}

// The estimate before a run, which the run checks (Trainer::check_memory()), counts one byte instead of four
// for each weight of a linear layer, and one scale per row.
TEST(TuningInt8, IsInTheMemoryEstimate) {
  const ModelSource model(kFolder + "/llama");
  RunShape run = shape_of({"llama", "lora"}, model, 1e-2);
  run.tuning = lora_plan(model.config(), {.rank = 4});
  const auto weights = [&](bool int8) {
    run.tuning.int8 = int8;
    return static_cast<int64_t>(run_memory(run).weights);
  };
  // The weights of a layer: queries 16 x 16, keys and values 8 x 16 each, projection 16 x 16, gate and up 32
  // x 16 each, down 16 x 32.
  const int64_t elements = 4 * (16 * 16 + 2 * 8 * 16 + 16 * 16 + 2 * 32 * 16 + 16 * 32),
                rows = 4 * (16 + 2 * 8 + 16 + 2 * 32 + 16);
  EXPECT_NEAR(
      static_cast<double>(weights(false) - weights(true)), static_cast<double>(3 * elements - 4 * rows),
      4 * 4 * 64 * 4 +
          // Padding: four scale vectors per layer begin at multiples of 64, two tensors at multiples of 256.
          512);
}

// Issue 22: the losses of packed samples differ from those of single samples by at most 1e-5.
TEST(TuningPacking, HasTheLossesOfSingleSamples) {
  for (const char* family : {"gpt2", "llama"}) {
    const ModelSource model(kFolder + "/" + family);
    Case c{family, "full"};
    const Examples all = examples();
    const TuningData single(all, one_by_one(all), {.step = kBatch, .shuffle = false});
    const Packs packs = pack(all, 32);
    const TuningData packed(all, packs, {.step = kBatch, .shuffle = false});
    const auto mean_loss = [&](const TuningData& data, bool documents, int64_t rows) {
      c.packed = documents;
      RunShape run = shape_of(c, model, 1e-3);
      run.model.seq_length = static_cast<int>(rows);
      const std::unique_ptr<Backend> backend = make_cpu_backend();
      const std::unique_ptr<Communicator> self = make_self_comm();
      Trainer trainer(run, *backend, *self);
      load_params(model.tensors(), trainer.params(), trainer.stream());
      double sum = 0, counted = 0;
      const SampleSource source = data.source();
      for (int64_t first = 0; first < data.samples_of_epoch(); first += kBatch) {
        double weight = 0;
        for (int64_t i = first; i < first + kBatch; ++i) weight += static_cast<double>(source.counted(i));
        sum += weight * trainer.evaluate(source, first);
        counted += weight;
      }
      return sum / counted;
    };
    const double alone = mean_loss(single, false, kLength), together = mean_loss(packed, true, 32);
    EXPECT_NEAR(together, alone, 1e-5) << family;
    EXPECT_LT(packs.size(), 60U);                                     // fewer than the 80 samples
    EXPECT_GT(std::abs(mean_loss(packed, false, 32) - alone), 1e-3);  // without the mask the losses differ
  }
}

}  // namespace
}  // namespace megalith::test
