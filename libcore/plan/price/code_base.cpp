#include "libcore/plan/price/code_base.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/plan/price/trainer.h"
#include "libcore/plan/shape/model_shape.h"

namespace megalith {
namespace {

Software megatron(bool) {
  Software s;
  s.overlap_tensor = true;
  return s;
}

/// Megatron-LM before Transformer Engine: scores are kept, and nothing overlaps.
Software megatron_2020(bool) {
  Software s;
  s.attention = AttentionKernel::kFusedSoftmax;
  s.overlap_gradients = s.overlap_parameters = false;
  return s;
}

Software megatron_2022(bool bf16) {
  Software s = megatron_2020(bf16);
  s.scatters_messages = true;
  return s;
}

/// NeMo and Megatron-Bridge: Megatron Core with gradients that are reduced in 16 bits.
Software nemo(bool bf16) {
  Software s = megatron(bf16);
  s.gradient_bytes = 2;
  return s;
}

Software deepspeed(bool bf16) {
  Software s;
  s.attention = AttentionKernel::kFusedSoftmax;
  s.gradient_bytes = bf16 ? 6 : 2;  // bf16 gradients are summed in fp32, too
  s.reduced_bytes = bf16 ? 4 : 2;
  s.fused_gradients = false;
  s.step_copy_bytes = 4;
  s.bucket_bytes = 2e9;  // two buffers of 5e8 elements
  s.overlap_gradients = s.overlap_parameters = s.overlap_messages = false;
  return s;
}

/// PyTorch's operators; gradients are summed whole, in fp32, 5e8 at a time.
Software scaling(bool) {
  Software s;
  s.attention = AttentionKernel::kFlash2;
  s.gradient_bytes = 2;
  s.reduced_bytes = 4;
  s.bucket_bytes = 3e9;
  s.reduces_whole = s.gathered_logits = s.torch_loss = s.keeps_gathered = true;
  s.fused_gradients = false;
  s.step_copy_bytes = 4;
  s.overlap_gradients = s.overlap_parameters = s.overlap_messages = false;
  s.fused_norm = s.fused_rope = s.fused_activation = false;
  // Assumed: otherwise the prediction leaves 8 GB free in two runs that had no memory to spare.
  s.keeps_softmax_input = true;
  return s;
}

/// The first flash attention, and separate silu and product.
Software internevo(bool) {
  Software s;
  s.attention = AttentionKernel::kFlash1;
  s.gradient_bytes = 2;
  s.fused_gradients = false;
  s.step_copy_bytes = 12;  // assumed: two flat copies of the gradients, and AdamW's own copy
  s.fused_activation = false;
  return s;
}

Software llm_foundry(bool) {
  Software s;
  s.attention = AttentionKernel::kFlash2;
  s.gradient_bytes = 2;
  s.fused_cross_entropy = true;
  s.fused_gradients = false;
  s.cast_norm = true;  // assumed: each norm is between two casts
  return s;
}

/// PyTorch's operators and its own cross entropy. Its schedules of pipelines synchronise gradients, and shard
/// parameters again, at the last microbatch.
Software torchtitan(bool) {
  Software s;
  s.pipelines_gather_once = true;
  s.attention = AttentionKernel::kFlash2;
  s.torch_loss = true;
  s.fused_gradients = s.fused_norm = s.fused_rope = s.fused_activation = false;
  return s;
}

/// flash-attention's kernels, a norm in Triton, PyTorch's activation and loss. Gradients are summed in fp32
/// beside those that PyTorch keeps, and the parameters are gathered after the step.
Software nanotron(bool) {
  Software s;
  s.attention = AttentionKernel::kFlash2;
  s.gradient_bytes = 6;
  s.reduced_bytes = 4;
  s.torch_loss = true;
  s.overlap_tensor = true;
  s.overlap_parameters = false;
  s.fused_gradients = s.fused_activation = false;
  return s;
}

/// C++ with fused kernels, a head that is computed in pieces, and steps that are replayed.
Software llmq(bool) {
  Software s;
  s.cuda_graphs = true;
  s.gradient_bytes = 2;
  s.fused_cross_entropy = true;
  return s;
}

Software megalith(bool) {
  return trainer_software();
}

constexpr CodeBase kCodeBases[] = {
    {.name = kMegatronSoftware,
     .what = "Megatron-LM since 2023, with Transformer Engine",
     .source = "known of the code base",
     .software = megatron,
     .takes_megatrons_options = true,
     .has_fitted_runs = true},
    {.name = "megatron-2022",
     .what = "Megatron-LM with pipelines whose tensor ranks send parts of messages",
     .source = "Narayanan et al. 2021, section 4.1",
     .software = megatron_2022,
     .has_fitted_runs = true},
    {.name = "megatron-2020",
     .what = "Megatron-LM before that",
     .source = "known of the code base",
     .software = megatron_2020,
     .has_fitted_runs = true},
    {.name = "nemo",
     .what = "NeMo",
     .source = "known of the code base",
     .software = nemo,
     .trains_adapters = true,
     .has_fitted_runs = true},
    {.name = "bridge",
     .what = "Megatron-Bridge",
     .source = "known of the code base",
     .software = nemo,
     .trains_adapters = true,
     .has_fitted_runs = true},
    {.name = "deepspeed",
     .what = "Megatron-DeepSpeed",
     .source = "known of the code base",
     .software = deepspeed,
     .has_fitted_runs = true},
    {.name = "torchtitan",
     .what = "torchtitan",
     .source = "known of the code base",
     .software = torchtitan,
     .recomputes_products = true,
     .has_fitted_runs = true},
    {.name = "fsdp",
     .what = "PyTorch's FSDP around a model of PyTorch's operators",
     .source = "assumed to do as torchtitan does",
     .software = torchtitan,
     .recomputes_products = true,
     .trains_adapters = true},
    {.name = "llm-foundry",
     .what = "llm-foundry",
     .source = "assumed, and kept as runs agree with it",
     .software = llm_foundry,
     .has_fitted_runs = true},
    {.name = "nanotron",
     .what = "nanotron",
     .source = "read in its source",
     .software = nanotron,
     .cut = cut_by_cost},
    {.name = "llmq", .what = "llmq", .source = "assumed before its runs were predicted", .software = llmq},
    {.name = "internevo",
     .what = "InternEvo",
     .source = "assumed, and kept as runs agree with it; its source for the layers of stages",
     .software = internevo,
     .cut = [](const ModelShape& m, int pipeline) { return cut_late(m.layers, pipeline); },
     .has_fitted_runs = true},
    {.name = "scaling",
     .what = "Aleph Alpha's scaling",
     .source = "read in its source; that it keeps a softmax's input is assumed",
     .software = scaling,
     .cut = [](const ModelShape& m, int pipeline) { return cut_of_modules(m.layers, pipeline); },
     .has_fitted_runs = true},
    {.name = kMegalithSoftware,
     .what = "this version's trainer",
     .source = "its own code",
     .software = megalith,
     .takes_megatrons_options = true,
     .trains_adapters = true}};

struct Feature {
  const char* word;
  std::function<void(Software&)> add;
};

/// DualPipe overlaps the exchange of tokens, too.
void add_dualpipe(Software& software) {
  software.schedule = Schedule::kDualPipe;
  software.overlap_exchange = true;
}

const std::vector<Feature>& features() {
  const auto flag = [](bool Software::*member) { return [member](Software& s) { s.*member = true; }; };
  const auto schedule = [](Schedule kind) { return [kind](Software& s) { s.schedule = kind; }; };
  static const std::vector<Feature> kFeatures = {{"compile", flag(&Software::compiled)},
                                                 {"cuda_graphs", flag(&Software::cuda_graphs)},
                                                 {"async_tp", flag(&Software::overlap_tensor)},
                                                 {"ce_fusion", flag(&Software::fused_cross_entropy)},
                                                 {"adam_8bit", flag(&Software::adam_8bit)},
                                                 {"fused_norm", flag(&Software::fused_norm)},
                                                 {"zbb", schedule(Schedule::kZeroBubble)},
                                                 {"zbv", schedule(Schedule::kZeroBubbleV)},
                                                 {"fp8_dispatch", flag(&Software::narrow_dispatch)},
                                                 {"dualpipe", add_dualpipe},
                                                 {"v-half", schedule(Schedule::kVHalf)},
                                                 {"v-min", schedule(Schedule::kVMin)}};
  return kFeatures;
}

}  // namespace

std::span<const CodeBase> code_bases() {
  return kCodeBases;
}

std::vector<std::string> code_base_names() {
  std::vector<std::string> names;
  for (const CodeBase& one : kCodeBases) names.emplace_back(one.name);
  return names;
}

const CodeBase& code_base(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kCodeBases), std::end(kCodeBases),
                                         [&](const CodeBase& one) { return one.name == name; });
  if (found == std::end(kCodeBases)) fail(ErrorKind::kInternal, "no code base is called ", quote(name));
  return *found;
}

Software default_software(const CodeBase& one, bool bf16) {
  Software out = one.software(bf16);
  out.code_base = one.name;
  return out;
}

bool takes_megatrons_options(const Software& software) {
  return code_base(software.code_base).takes_megatrons_options;
}

std::vector<std::string> feature_words() {
  std::vector<std::string> words;
  for (const Feature& one : features()) words.emplace_back(one.word);
  return words;
}

bool add_feature(Software& software, std::string_view word) {
  for (const Feature& one : features()) {
    if (one.word != word) continue;
    one.add(software);
    return true;
  }
  return false;
}

// scaling's source: core/nn/parallel_module/pipeline_partitioning.py.
std::vector<int> cut_of_modules(int layers, int pipeline) {
  constexpr int kBefore = 1, kAfter = 2;  // the embedding; the final norm and the head
  const int modules = layers + kBefore + kAfter;
  if (pipeline < 2 || modules < 3 * pipeline) return {};
  std::vector<int> stages(static_cast<size_t>(pipeline), modules / pipeline);
  for (int stage = 0; stage < modules % pipeline; ++stage) ++stages[static_cast<size_t>(stage)];
  stages.front() -= kBefore;
  stages.back() -= kAfter;
  return stages;
}

// InternEvo's source: partition_uniform().
std::vector<int> cut_late(int layers, int pipeline) {
  const int more = layers % pipeline;
  if (more == 0 || layers < pipeline) return {};
  std::vector<int> stages(static_cast<size_t>(pipeline), layers / pipeline);
  for (int stage = pipeline - more; stage < pipeline; ++stage) ++stages[static_cast<size_t>(stage)];
  return stages;
}

// nanotron's source: build_model() in models/base.py, get_block_compute_costs() in models/llama.py.
std::vector<int> cut_by_cost(const ModelShape& m, int pipeline) {
  if (pipeline < 2) return {};
  constexpr double kAttention = 4, kBlock = 3;  // matrices as wide as the model, and as the dense block
  const double hidden = m.hidden, head = static_cast<double>(m.vocab_size) * hidden;
  const double layer = kAttention * m.heads * m.kv_channels * hidden + kBlock * m.ffn_hidden * hidden;
  const double part = (m.layers * layer + head) / pipeline;
  std::vector<int> stages(static_cast<size_t>(pipeline), 0);
  size_t stage = 0;
  for (int done = 1; done <= m.layers; ++done) {
    ++stages[stage];
    if (done * layer > part * static_cast<double>(stage + 1)) stage = std::min(stage + 1, stages.size() - 1);
  }
  return stages.back() > 0 ? stages : std::vector<int>{};
}

}  // namespace megalith
