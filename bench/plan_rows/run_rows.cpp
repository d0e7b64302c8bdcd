#include "bench/plan_rows/run_rows.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/small_json.h"
#include "libcore/plan/price/code_base.h"
#include "libcore/plan/request/plan_options.h"
#include "libcore/plan/shape/hf_shape.h"
#include "libcore/plan/shape/model_options.h"

namespace megalith {
namespace {

std::vector<std::string> cells(std::string_view line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (char c : line) {
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted)
      out.emplace_back();
    else if (c != '"' && c != '\r')
      out.back() += c;
  }
  return out;
}

/// The lines of a CSV text. A line whose end is inside a quoted cell continues in the next one.
std::vector<std::string> lines_of(const std::string& csv) {
  std::vector<std::string> lines;
  bool quoted = false;
  for (const std::string& line : split(csv, '\n')) {
    if (quoted)
      lines.back() += "\n" + line;
    else
      lines.push_back(line);
    if (std::count(line.begin(), line.end(), '"') % 2 != 0) quoted = !quoted;
  }
  return lines;
}

bool has(const std::string& in, std::string_view what) {
  return in.find(what) != std::string::npos;
}

/// What a row's framework is as --software, with what its name alone does not say.
struct Framework {
  std::string software;
  std::optional<AttentionKernel> attention = {};  // whatever the row says
  std::optional<bool> overlap_tensor = {}, overlap_gradients = {};
};

Framework framework_of(const RunRow& r) {
  const std::string& name = cell(r, "framework");
  if (has(name, "DeepSpeed")) return {"deepspeed"};
  if (name == "AA-Scaling") return {"scaling"};
  if (name == "InternEvo") return {"internevo", AttentionKernel::kFlash1};
  if (name == "llm-foundry/FSDP") return {"llm-foundry"};
  if (name == "Megatron-LM" && cell(r, "precision") == "fp16") return {"megatron-2022"};
  if (name == "Megatron-LM") return {kMegatronSoftware, AttentionKernel::kFused};
  if (name == "NeMo/Megatron-Core") return {"nemo", AttentionKernel::kFused};
  if (name == "Megatron-Bridge") return {"bridge", AttentionKernel::kFused};
  const std::vector<std::string> names = code_base_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return {name};
  // SimuMax's launch script (simu_tools/megatron_scripts/scripts/run_pretrain_llama3.sh) turns the overlap of
  // tensor ranks off and does not ask for that of gradients and parameters.
  if (name.starts_with("Megatron-LM 0.14"))
    return {.software = kMegatronSoftware, .overlap_tensor = false, .overlap_gradients = false};
  // A program around Megatron-LM, which is not said to overlap the communication of tensor ranks.
  return {.software = kMegatronSoftware, .overlap_tensor = false};
}

AttentionKernel kernel_of(const std::string& name) {
  if (has(name, "flash_attentionv1") || name == "flash_attention") return AttentionKernel::kFlash1;
  if (has(name, "TE")) return AttentionKernel::kFused;
  if (has(name, "flash")) return AttentionKernel::kFlash2;
  return name == "torch" || name == "unfused" ? AttentionKernel::kTorch : AttentionKernel::kFusedSoftmax;
}

AttentionKernel attention_of(const RunRow& r) {
  return framework_of(r).attention.value_or(kernel_of(cell(r, "attn_kernel")));
}

/// The row's features that --software-features knows; the others are those of other options, or say nothing.
std::vector<std::string> features_of(const RunRow& r) {
  std::vector<std::string> out;
  Software unused;
  for (const std::string& word : split(cell(r, "features"), '+'))
    if (add_feature(unused, word)) out.push_back(word);
  if (framework_of(r).software == "scaling" && has(cell(r, "attn_kernel"), "RMS"))
    out.push_back("fused_norm");
  return out;
}

/// Megatron-Bridge's recipes overlap the exchange if the micro-batch is 1 and the pipeline is interleaved.
/// (Overlapping requires an interleaved pipeline.)
bool overlaps_exchange(const RunRow& r) {
  return has(cell(r, "features"), "a2a_overlap") ||
         (cell(r, "framework") == "Megatron-Bridge" && whole_in(r, "vpp", 1) > 1 &&
          whole_in(r, "micro_batch") == 1);
}

Software software_of(const RunRow& r) {
  const Framework framework = framework_of(r);
  Software s = default_software(code_base(framework.software), cell(r, "precision") == "bf16");
  for (const std::string& word : features_of(r)) add_feature(s, word);
  s.attention = attention_of(r);
  if (framework.overlap_tensor) s.overlap_tensor = *framework.overlap_tensor;
  if (framework.overlap_gradients) s.overlap_gradients = s.overlap_parameters = *framework.overlap_gradients;
  s.overlap_exchange = overlaps_exchange(r);
  return s;
}

std::string device_of(const RunRow& r) {
  const std::string& gpu = cell(r, "gpu");
  return gpu.substr(0, gpu.find_first_of(" ("));
}

/// Gbit/s of a device's network; nothing: the usual one of the device. Assumed for A100s and A800s if the
/// source gives none: 400 for eight devices.
std::optional<double> network_of(const RunRow& r) {
  if (const double gbps = number_in(r, "nic_gbps"); gbps > 0) return gbps;
  const std::string device = device_of(r);
  constexpr double kRentedA100 = 50;
  const bool rented = device.starts_with("A100") || device.starts_with("A800");
  return rented ? std::optional(kRentedA100) : std::nullopt;
}

int machine_size_of(const RunRow& r) {
  return whole_in(r, "node_gpus", 8);
}

Precision precision_of(const std::string& name) {
  if (name == "fp32") return Precision::kFloat32;
  if (name == "fp8") return Precision::kFp8;
  if (name == "mxfp8") return Precision::kMxfp8;
  return name == "nvfp4" ? Precision::kNvfp4 : Precision::kHalf;
}

bool has_experts(const RunRow& r) {
  return cell(r, "arch").starts_with("moe");
}

/// "Qwen3_30B_a3B" -> "qwen330ba3b".
std::string folded(const std::string& name) {
  std::string out;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)))
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// The published mixture whose name is a prefix of the model's name; if there are several, the one with the
/// longest name.
std::optional<ModelShape> mixture(const std::string& model) {
  static const std::string kFile = MEGALITH_SOURCE_DIR "/docs/mixtures.json";
  static const Json kMixtures = load_small(kFile);
  std::string best;
  for (const auto& [name, entry] : kMixtures["models"].as_object())
    if (folded(model).starts_with(folded(name)) && name.size() > best.size()) best = name;
  if (best.empty()) return std::nullopt;
  static std::map<std::string, ModelShape> shapes;  // so that what is said of a model is said once
  const auto known = shapes.find(best);
  if (known != shapes.end()) return known->second;
  return shapes[best] = parse_hf_shape(kMixtures["models"][best]["config"], kFile + ": " + best);
}

/// Whether Megatron-Bridge's recipe sends tokens through DeepEP or HybridEP: scripts/performance/configs, as
/// of early 2026. The recipes for gpt-oss, and for Qwen3-235B on machines of eight devices, exchange tokens
/// through NCCL.
bool recipe_dispatches(const RunRow& r) {
  const std::string name = folded(cell(r, "model"));
  const bool by_nccl =
      name.starts_with("gptoss") || (name.starts_with("qwen3235b") && whole_in(r, "node_gpus") <= 8);
  return !by_nccl;
}

/// Gives the model `layers` layers. A list of the layers that have experts is cut, too; further layers are
/// like its last one.
void set_layers(ModelShape& m, int layers) {
  m.layers = layers;
  if (m.layer_freq.find('[') == std::string::npos) return;
  std::string kept;
  for (int i = 0; i < layers; ++i) kept += concat(i > 0 ? "," : "", m.plain_layers(i, i + 1) > 0 ? 0 : 1);
  m.layer_freq = '[' + kept + ']';
  m.finish();
}

/// The shape of the row's mixture. The row may replace the number of layers, the sequence length and the
/// vocabulary size.
ModelShape mixture_of(const RunRow& r) {
  ModelShape m = *mixture(cell(r, "model"));
  if (const int layers = whole_in(r, "layers", m.layers); layers != m.layers) set_layers(m, layers);
  m.seq_length = m.max_positions = whole_in(r, "seq");
  m.vocab_size = whole_in(r, "vocab", static_cast<int>(m.vocab_size));
  // Megatron-Bridge's benchmarks force a balance of the experts (scripts/moe_model_zoo); for other code bases
  // this is assumed.
  m.forced_balance = true;
  const bool bridge = cell(r, "framework") == "Megatron-Bridge";
  if ((bridge && recipe_dispatches(r)) || has(cell(r, "features"), "deepep"))
    m.dispatcher = Dispatcher::kFlex;
  // Megatron-Bridge's recipe for DeepSeek-V3 predicts one further token, as the model's report says.
  if (bridge && folded(cell(r, "model")).starts_with("deepseekv3")) m.predicted = 1;
  return m;
}

bool is_llama(const RunRow& r) {
  return cell(r, "arch") == "llama";
}
bool has_tied_head(const RunRow& r) {
  return !is_llama(r) || has(cell(r, "features"), "tied_head");
}
bool has_no_dropout(const RunRow& r) {
  return is_llama(r) || cell(r, "framework") == "llm-foundry/FSDP" || cell(r, "attn_kernel") == "TE fused";
}

ModelShape dense_shape(const RunRow& r) {
  ModelShape m;
  m.layers = whole_in(r, "layers");
  m.hidden = whole_in(r, "hidden");
  m.heads = whole_in(r, "heads");
  m.query_groups = whole_in(r, "kv_heads", m.heads);
  m.group_query = m.query_groups != m.heads;
  m.kv_channels = m.hidden / m.heads;
  m.ffn_hidden = whole_in(r, "ffn");
  m.seq_length = m.max_positions = whole_in(r, "seq");
  m.vocab_size = whole_in(r, "vocab");
  if (is_llama(r)) {
    m.swiglu = true;
    m.untied_head = !has_tied_head(r);
    m.linear_bias = false;
    m.norm = Normalization::kRmsNorm;
    m.position = PositionEmbedding::kRope;
  }
  if (has_no_dropout(r)) m.hidden_dropout = m.attention_dropout = 0;
  return m;
}

/// Megatron-Bridge's recipes for DeepSeek-V3 and Kimi K2 divide 61 layers into parts of 4, 8 or 16; the last
/// part has the remaining layers, the further prediction and the loss: "Et*4|(t*4|)*14tmL".
std::vector<int> cut_of_recipe(int layers, int pipeline, int chunks) {
  const int each = (layers + pipeline * chunks - 1) / (pipeline * chunks);
  std::vector<int> stages(static_cast<size_t>(pipeline), 0);
  for (int part = 0; part < pipeline * chunks; ++part)
    stages[static_cast<size_t>(part % pipeline)] += std::min(each, layers - part * each);
  return stages;
}

Sharding sharding_of(const std::string& name) {
  if (name.starts_with("zero3") || name == "fsdp") return Sharding::kParameters;
  if (name == "zero2") return Sharding::kGradients;
  return name == "y" ? Sharding::kOptimizer : Sharding::kNone;
}

Recomputed recomputed_of(const std::string& name) {
  if (name == "full") return Recomputed::kFull;
  if (name == "selective") return Recomputed::kAttention;
  if (name == "selective-op") return Recomputed::kProducts;
  return name == "norm,act" ? Recomputed::kNormAct : Recomputed::kNone;
}

/// The words of a line of a model's options, without the quotes around some of them, and without the one
/// that no plan depends on.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> out;
  for (std::string word : split(line, ' ')) {
    std::erase(word, '"');
    if (word != "--moe-grouped-gemm") out.push_back(std::move(word));
  }
  return out;
}

/// Writes the options of a row.
class Command {
 public:
  explicit Command(const RunRow& row) : r_(row), p_(problem_of(row)), c_(candidate_of(row, p_)) {}

  std::vector<std::string> words() {
    add_software();
    add_machine();
    add_model();
    add_layout();
    add_stages();
    add_recomputation();
    add_precision();
    return std::move(out_);
  }

 private:
  template <class... Values>
  void add(const char* option, const Values&... values) {
    out_.push_back(concat("--", option));
    (out_.push_back(concat(values)), ...);
  }

  void add_software() {
    add("software", p_.software.code_base);
    if (const std::vector<std::string> words = features_of(r_); !words.empty()) {
      add("software-features");
      out_.insert(out_.end(), words.begin(), words.end());
    }
    add("attention-kernel", enum_name(p_.software.attention));
    if (framework_of(r_).overlap_tensor == false) add("no-tp-comm-overlap");
    if (framework_of(r_).overlap_gradients == false) add("no-overlap-grad-reduce");
  }
  void add_machine() {
    add("gpu", device_of(r_));
    add("world-size", p_.machine.world);
    const int size = machine_size_of(r_);
    const bool usual = size == p_.machine.device.link_domain || p_.machine.world % size != 0;
    if (!usual) add("local-world-size", size);
    if (const auto gbps = network_of(r_)) add("network-gbps", format_double(*gbps));
  }
  void add_mixture() {
    const std::vector<std::string> words = words_of(model_options(p_.model, false));
    out_.insert(out_.end(), words.begin(), words.end());
    add("expert-model-parallel-size", c_.expert);
    add("expert-tensor-parallel-size", c_.expert_tensor);
    if (p_.software.overlap_exchange) add("overlap-moe-expert-parallel-comm");
  }
  void add_model() {
    if (has_experts(r_)) return add_mixture();
    const ModelShape& m = p_.model;
    add("num-layers", m.layers);
    add("hidden-size", m.hidden);
    add("num-attention-heads", m.heads);
    if (m.group_query) add("group-query-attention"), add("num-query-groups", m.query_groups);
    add("ffn-hidden-size", m.ffn_hidden);
    add("seq-length", m.seq_length);
    add("max-position-embeddings", m.max_positions);
    add("vocab-size", m.vocab_size);
    if (is_llama(r_)) {
      for (const char* flag : {"swiglu", "disable-bias-linear"}) add(flag);
      if (!has_tied_head(r_)) add("untie-embeddings-and-output-weights");
      add("normalization", "RMSNorm");
      add("position-embedding-type", "rope");
    }
    if (has_no_dropout(r_)) add("attention-dropout", 0), add("hidden-dropout", 0);
  }
  void add_layout() {
    add("global-batch-size", c_.global_batch);
    add("micro-batch-size", c_.micro_batch);
    add("tensor-model-parallel-size", c_.tensor);
    add("pipeline-model-parallel-size", c_.pipeline);
    add("context-parallel-size", c_.context);
    add(c_.sequence ? "sequence-parallel" : "no-sequence-parallel");
    add("sharding", enum_name(c_.sharding));
  }
  void add_stages() {
    const bool by_rule = code_base(p_.software.code_base).cut != nullptr;  // the code base divides them
    if (c_.pipeline == 1 || (by_rule && !p_.stage_layers.empty())) return;
    const int counted = counted_layers(p_, c_);
    if (c_.counts_embedding) add("account-for-embedding-in-pipeline-split");
    if (c_.counts_head) add("account-for-loss-in-pipeline-split");
    if (p_.stage_layers.empty() && counted % c_.pipeline == 0)
      return add("num-layers-per-virtual-pipeline-stage", counted / c_.pipeline / c_.chunks);
    std::string stages;
    for (int stage = 0; stage < c_.pipeline; ++stage)
      stages += concat(stage > 0 ? "," : "", stage_layers(p_, c_, stage));
    add("pipeline-layers", stages);
  }
  void add_recomputation() {
    const bool none = c_.recompute == Recomputed::kNone, full = c_.recompute == Recomputed::kFull;
    add("recompute-granularity", none ? "none" : full ? "full" : "selective");
    if (full) add("recompute-method", "uniform"), add("recompute-num-layers", 1);
    if (c_.recompute == Recomputed::kNormAct) add("recompute-modules", "layernorm", "mlp_act");
    if (c_.recompute == Recomputed::kProducts) add("recompute-modules", "products");
  }
  void add_precision() {
    if (cell(r_, "precision") == "fp16") add("fp16");
    if (p_.precision == Precision::kFp8) add("fp8-format", "hybrid");
    if (p_.precision == Precision::kMxfp8) add("fp8-format", "e4m3"), add("fp8-recipe", "mxfp8");
    if (p_.precision == Precision::kNvfp4) add("fp4-format", "e2m1");
  }

  const RunRow& r_;
  const PlanProblem p_;
  const Candidate c_;
  std::vector<std::string> out_;
};

}  // namespace

std::vector<RunRow> read_run_rows(const std::string& path) {
  const std::vector<std::string> lines = lines_of(read_file(path));
  const std::vector<std::string> header = cells(lines.at(0));
  std::vector<RunRow> rows;
  for (size_t i = 1; i < lines.size(); ++i) {
    if (trim(lines[i]).empty()) continue;
    const std::vector<std::string> values = cells(lines[i]);
    RunRow& row = rows.emplace_back();
    for (size_t k = 0; k < header.size(); ++k) row[header[k]] = k < values.size() ? values[k] : "";
  }
  return rows;
}

const std::string& cell(const RunRow& r, const char* column) {
  static const std::string kNothing;
  const auto at = r.find(column);
  return at == r.end() ? kNothing : at->second;
}
double number_in(const RunRow& r, const char* column, double otherwise) {
  return parse_double(cell(r, column)).value_or(otherwise);
}
int whole_in(const RunRow& r, const char* column, int otherwise) {
  return static_cast<int>(number_in(r, column, otherwise));
}

bool expressible(const RunRow& r) {
  const std::string& arch = cell(r, "arch");
  for (const char* size : {"tp", "pp", "cp", "ep", "vpp"})
    if (whole_in(r, size, 1) < 1) return false;
  for (const char* size : {"gpus", "layers", "seq"})
    if (whole_in(r, size) < 1) return false;
  if (has_experts(r)) {
    const auto shape = mixture(cell(r, "model"));
    const int stages = std::max(1, whole_in(r, "pp", 1)), ranks = whole_in(r, "gpus") / stages;
    return shape && shape->hidden == whole_in(r, "hidden") && ranks > 0 &&
           ranks % std::max(1, whole_in(r, "ep", 1)) == 0;
  }
  return (arch == "gpt" || arch == "llama") && number_in(r, "heads") > 0 && number_in(r, "ffn") > 0 &&
         number_in(r, "hidden") > 0;
}

PlanProblem problem_of(const RunRow& r) {
  PlanProblem p;
  p.model = has_experts(r) ? mixture_of(r) : dense_shape(r);
  p.machine.device = find_accelerator(device_of(r));
  if (const auto gbps = network_of(r)) p.machine.device.network_bandwidth = *gbps * 1e9 / 8;
  set_machines(p.machine, whole_in(r, "gpus"), machine_size_of(r));
  p.precision = precision_of(cell(r, "precision"));
  p.software = software_of(r);
  p.global_batch = whole_in(r, "global_batch");
  const int pipeline = whole_in(r, "pp", 1);
  if (cell(r, "framework") == "Megatron-Bridge" && cell(r, "arch") == "moe-mla" && pipeline > 1)
    p.stage_layers = cut_of_recipe(p.model.layers, pipeline, whole_in(r, "vpp", 1));
  if (const auto cut = code_base(p.software.code_base).cut) p.stage_layers = cut(p.model, pipeline);
  return p;
}

Candidate candidate_of(const RunRow& r, const PlanProblem& p) {
  Candidate c;
  c.tensor = whole_in(r, "tp", 1);
  c.pipeline = whole_in(r, "pp", 1);
  c.context = whole_in(r, "cp", 1);
  c.data = std::max(1, p.machine.world / (c.tensor * c.pipeline * c.context));
  // Assumes that each expert is whole on one rank, as in Megatron-Bridge's recipes, since no column says
  // otherwise.
  c.expert = std::max(1, whole_in(r, "ep", 1));
  c.chunks = whole_in(r, "vpp", 1);
  c.micro_batch = whole_in(r, "micro_batch", 1);
  c.sequence = cell(r, "sp") == "y" && c.tensor > 1;
  c.sharding = sharding_of(cell(r, "dist_opt"));
  c.recompute = recomputed_of(cell(r, "recompute"));
  const int total = p.model.layers + 2;  // embedding and head count as layers if that makes the division even
  if (c.pipeline > 1 && p.model.layers % c.pipeline != 0 && total % c.pipeline == 0) {
    c.first_layers = c.last_layers = total / c.pipeline - 1;
    c.counts_embedding = c.counts_head = true;
  }
  c.global_batch = p.global_batch;
  c.microbatches = std::max<int64_t>(
      1, std::llround(static_cast<double>(c.global_batch) / (static_cast<double>(c.micro_batch) * c.data)));
  return c;
}

std::optional<std::vector<std::string>> command_of(const RunRow& r) {
  if (!expressible(r) || whole_in(r, "micro_batch") < 1 || whole_in(r, "global_batch") < 1)
    return std::nullopt;
  const PlanProblem p = problem_of(r);
  const Candidate c = candidate_of(r, p);
  const bool even = p.stage_layers.empty() && counted_layers(p, c) % (c.pipeline * c.chunks) == 0;
  if (c.chunks > 1 && !even) return std::nullopt;
  return Command(r).words();
}

}  // namespace megalith
