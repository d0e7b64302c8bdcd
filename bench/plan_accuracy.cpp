// bench_plan_accuracy FILE.csv [--predictions OUT.csv] [--coefficients FILE | --coefficients-by-class FOLDER]
//
// Predicts the step time and the memory of every run in a table and, where the table has measurements, prints
// the errors. Predictions do not depend on any measurement. `fullness` in the predictions is the memory that
// a device needs, as a share of what it has. --list prints the coefficients. With --coefficients-by-class, a
// row of class C is predicted with FOLDER/C.txt if that file exists; tools/plan_fit has fitted these
// coefficients to the rows of all other classes.
//
// A row that cannot be priced, due to its device or a missing or invalid size, gets an empty line in the
// predictions; stderr names an unknown device.
//
// Rows of mixtures of experts are priced if their model is one of docs/mixtures.json, whose published shape
// supplies what the columns do not say.
//
// The table has a header and one run a row. These columns are read: model (one of docs/mixtures.json),
// layers, hidden, heads, kv_heads, ffn, vocab, seq, gpu, gpus, tp, pp, cp, ep, vpp, micro_batch,
// global_batch, recompute, sp, dist_opt, precision, framework, arch, attn_kernel, mem_kind, node_gpus,
// nic_gbps, features, eval_class; to print errors also iter_time_s and peak_mem_gb.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/figures/quantile.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/small_json.h"
#include "libcore/plan/price/memory_estimate.h"
#include "libcore/plan/price/time_model.h"
#include "libcore/plan/shape/hf_shape.h"

namespace megalith {
namespace {

using Record = std::map<std::string, std::string>;

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

std::vector<Record> load(const std::string& path) {
  const std::vector<std::string> lines = lines_of(read_file(path));
  const std::vector<std::string> header = cells(lines.at(0));
  std::vector<Record> records;
  for (size_t i = 1; i < lines.size(); ++i) {
    if (trim(lines[i]).empty()) continue;
    const std::vector<std::string> row = cells(lines[i]);
    Record& record = records.emplace_back();
    for (size_t k = 0; k < header.size(); ++k) record[header[k]] = k < row.size() ? row[k] : "";
  }
  return records;
}

const std::string& text(const Record& r, const char* column) {
  static const std::string kNothing;
  const auto at = r.find(column);
  return at == r.end() ? kNothing : at->second;
}
double number(const Record& r, const char* column, double otherwise = 0) {
  return parse_double(text(r, column)).value_or(otherwise);
}
int whole(const Record& r, const char* column, int otherwise = 0) {
  return static_cast<int>(number(r, column, otherwise));
}
bool has(const std::string& in, std::string_view what) {
  return in.find(what) != std::string::npos;
}

Accelerator device(const Record& r) {
  std::string gpu = text(r, "gpu");
  gpu = gpu.substr(0, gpu.find_first_of(" ("));
  for (const auto& [from, to] : {std::pair{"A100-40", "A100-SXM-40"},
                                 {"A100-80", "A100-SXM-80"},
                                 {"V100-16", "V100-SXM2-16"},
                                 {"V100-32", "V100-SXM2-32"},
                                 {"B200-SXM", "B200"}})
    if (gpu.starts_with(from)) gpu = to + gpu.substr(std::string(from).size());
  Accelerator out = find_accelerator(gpu);
  // Assumed for A100s and A800s if the source gives no network speed: 400 Gbit/s for eight devices.
  constexpr double kRentedA100 = 50e9 / 8;
  if (out.name.starts_with("A100") || out.name.starts_with("A800")) out.network_bandwidth = kRentedA100;
  if (const double gbps = number(r, "nic_gbps"); gbps > 0) out.network_bandwidth = gbps * 1e9 / 8;
  return out;
}

AttentionKernel attention_kernel(const std::string& name) {
  if (has(name, "flash_attentionv1") || name == "flash_attention") return AttentionKernel::kFlash1;
  if (has(name, "TE")) return AttentionKernel::kFused;
  if (has(name, "flash")) return AttentionKernel::kFlash2;
  return name == "torch" || name == "unfused" ? AttentionKernel::kTorch : AttentionKernel::kFusedSoftmax;
}

Schedule schedule(const std::string& features) {
  if (has(features, "zbb")) return Schedule::kZeroBubble;
  if (has(features, "zbv")) return Schedule::kZeroBubbleV;
  if (has(features, "v-half")) return Schedule::kVHalf;
  if (has(features, "v-min")) return Schedule::kVMin;
  return Schedule::kOneForwardOneBackward;
}

/// How the row's code base trains. docs/planner.md says what of this was read in sources and what is assumed.
Software software(const Record& r) {
  const std::string &framework = text(r, "framework"), &kernel = text(r, "attn_kernel"),
                    &features = text(r, "features");
  Software s;
  s.attention = attention_kernel(kernel);
  s.schedule = schedule(features);
  s.compiled = has(features, "compile");
  s.overlap_tensor = has(features, "async_tp");
  s.fused_cross_entropy = has(features, "ce_fusion");
  s.adam_8bit = has(features, "adam_8bit");
  // Megatron-Bridge's recipes overlap the exchange if the micro-batch is 1 and the pipeline is interleaved.
  // (Overlapping requires an interleaved pipeline.)
  s.overlap_exchange =
      has(features, "a2a_overlap") ||
      (framework == "Megatron-Bridge" && whole(r, "vpp", 1) > 1 && whole(r, "micro_batch") == 1);
  const bool bf16 = text(r, "precision") == "bf16";
  if (has(framework, "DeepSpeed")) {  // overlaps no communication; sums bf16 gradients also in fp32
    s.gradient_bytes = bf16 ? 6 : 2;
    s.reduced_bytes = bf16 ? 4 : 2;
    s.fused_gradients = false;
    s.step_copy_bytes = 4;
    s.bucket_bytes = 2e9;  // two buffers of 5e8 elements
    s.overlap_gradients = s.overlap_parameters = s.overlap_messages = false;
  } else if (framework ==
             "AA-Scaling") {  // uses PyTorch's operators; sums gradients whole, in fp32, 5e8 at a time
    s.gradient_bytes = 2;
    s.reduced_bytes = 4;
    s.bucket_bytes = 3e9;
    s.reduces_whole = s.gathered_logits = s.torch_loss = s.keeps_gathered = true;
    s.fused_gradients = false;
    s.step_copy_bytes = 4;
    s.overlap_gradients = s.overlap_parameters = s.overlap_messages = false;
    s.fused_norm = has(kernel, "RMS");
    s.fused_rope = s.fused_activation = false;
    s.keeps_softmax_input =
        true;  // assumed: otherwise the prediction leaves 8 GB free in two runs that had no memory to spare
  } else if (framework == "InternEvo") {  // uses the first flash attention, and separate silu and product
    s.attention = AttentionKernel::kFlash1;
    s.gradient_bytes = 2;
    s.fused_gradients = false;
    s.step_copy_bytes = 12;  // assumed: two flat copies of the gradients, and AdamW's own copy
    s.fused_activation = false;
  } else if (framework == "llm-foundry/FSDP") {  // assumed: each norm is between two casts
    s.gradient_bytes = 2;
    s.fused_cross_entropy = true;
    s.fused_gradients = false;
    s.cast_norm = true;
  } else if (framework == "torchtitan") {
    s.gradient_bytes = 4;
    s.torch_loss = true;
    s.fused_gradients = s.fused_norm = s.fused_rope = s.fused_activation = false;
  } else if (framework == "Megatron-LM" && text(r, "precision") == "fp16") {  // Megatron-LM until 2022
    s.overlap_gradients = s.overlap_parameters = false;
    s.scatters_messages = true;  // Narayanan et al. 2021, section 4.1
  } else if (framework == "Megatron-LM" || framework == "NeMo/Megatron-Core" ||
             framework == "Megatron-Bridge") {
    s.attention = AttentionKernel::kFused;
    s.overlap_tensor = true;
    if (framework != "Megatron-LM") s.gradient_bytes = 2;  // NeMo reduces gradients in 16 bits
  }
  return s;
}

Precision precision(const std::string& name) {
  if (name == "fp32") return Precision::kFloat32;
  if (name == "fp8") return Precision::kFp8;
  if (name == "mxfp8") return Precision::kMxfp8;
  return name == "nvfp4" ? Precision::kNvfp4 : Precision::kHalf;
}

/// AA-Scaling divides its list of modules (embedding, layers, final norm, head) evenly, and the first stages
/// take the remainder (its source: core/nn/parallel_module/pipeline_partitioning.py).
std::vector<int> cut_of_modules(int layers, int pipeline) {
  const int modules = layers + 3, each = modules / pipeline, more = modules % pipeline;
  std::vector<int> stages(static_cast<size_t>(pipeline), each);
  for (int stage = 0; stage < more; ++stage) ++stages[static_cast<size_t>(stage)];
  stages.front() -= 1;
  stages.back() -= 2;
  return stages;
}

bool has_experts(const Record& r) {
  return text(r, "arch").starts_with("moe");
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
  return parse_hf_shape(kMixtures["models"][best]["config"], kFile + ": " + best);
}

/// Whether Megatron-Bridge's recipe sends tokens through DeepEP or HybridEP: scripts/performance/configs, as
/// of early 2026. The recipes for gpt-oss, and for Qwen3-235B on machines of eight devices, exchange tokens
/// through NCCL.
bool recipe_dispatches(const Record& r) {
  const std::string name = folded(text(r, "model"));
  const bool by_nccl =
      name.starts_with("gptoss") || (name.starts_with("qwen3235b") && whole(r, "node_gpus") <= 8);
  return !by_nccl;
}

/// The shape of the row's mixture. The row may replace the number of layers, the sequence length and the
/// vocabulary size.
ModelShape mixture_of(const Record& r) {
  ModelShape m = *mixture(text(r, "model"));
  m.layers = whole(r, "layers", m.layers);
  m.seq_length = m.max_positions = whole(r, "seq");
  m.vocab_size = whole(r, "vocab", static_cast<int>(m.vocab_size));
  // Megatron-Bridge's benchmarks force a balance of the experts (scripts/moe_model_zoo); for other code bases
  // this is assumed.
  m.forced_balance = true;
  const bool bridge = text(r, "framework") == "Megatron-Bridge";
  if ((bridge && recipe_dispatches(r)) || has(text(r, "features"), "deepep"))
    m.dispatcher = Dispatcher::kFlex;
  // Megatron-Bridge's recipe for DeepSeek-V3 predicts one further token, as the model's report says.
  if (bridge && folded(text(r, "model")).starts_with("deepseekv3")) m.predicted = 1;
  return m;
}

ModelShape dense_shape(const Record& r) {
  ModelShape m;
  m.layers = whole(r, "layers");
  m.hidden = whole(r, "hidden");
  m.heads = whole(r, "heads");
  m.query_groups = whole(r, "kv_heads", m.heads);
  m.group_query = m.query_groups != m.heads;
  m.kv_channels = m.hidden / m.heads;
  m.ffn_hidden = whole(r, "ffn");
  m.seq_length = m.max_positions = whole(r, "seq");
  m.vocab_size = whole(r, "vocab");
  if (text(r, "arch") == "llama") {
    m.swiglu = m.untied_head = true;
    m.linear_bias = false;
    m.norm = Normalization::kRmsNorm;
    m.position = PositionEmbedding::kRope;
    m.hidden_dropout = m.attention_dropout = 0;
  } else if (text(r, "framework") == "llm-foundry/FSDP" || text(r, "attn_kernel") == "TE fused") {
    m.hidden_dropout = m.attention_dropout = 0;
  }
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

PlanProblem problem(const Record& r) {
  PlanProblem p;
  p.model = has_experts(r) ? mixture_of(r) : dense_shape(r);
  const int world = whole(r, "gpus");
  p.machine = {device(r), world, std::min(whole(r, "node_gpus", 8), world)};
  p.precision = precision(text(r, "precision"));
  p.software = software(r);
  p.global_batch = whole(r, "global_batch");
  const int pipeline = whole(r, "pp", 1);
  if (text(r, "framework") == "Megatron-Bridge" && text(r, "arch") == "moe-mla" && pipeline > 1)
    p.stage_layers = cut_of_recipe(p.model.layers, pipeline, whole(r, "vpp", 1));
  if (text(r, "framework") == "AA-Scaling" && pipeline > 1 && p.model.layers + 3 >= 3 * pipeline)
    p.stage_layers = cut_of_modules(p.model.layers, pipeline);
  return p;
}

Sharding sharding(const std::string& name) {
  if (name.starts_with("zero3") || name == "fsdp") return Sharding::kParameters;
  if (name == "zero2") return Sharding::kGradients;
  return name == "y" ? Sharding::kOptimizer : Sharding::kNone;
}

Recomputed recompute(const std::string& name) {
  if (name == "full") return Recomputed::kFull;
  if (name == "selective") return Recomputed::kAttention;
  if (name == "selective-op") return Recomputed::kProducts;
  return name == "norm,act" ? Recomputed::kNormAct : Recomputed::kNone;
}

/// The layout that the row describes, whether or not Megatron would accept it.
Candidate candidate(const Record& r, const PlanProblem& p) {
  Candidate c;
  c.tensor = whole(r, "tp", 1);
  c.pipeline = whole(r, "pp", 1);
  c.context = whole(r, "cp", 1);
  c.data = std::max(1, p.machine.world / (c.tensor * c.pipeline * c.context));
  // Assumes that each expert is whole on one rank, as in Megatron-Bridge's recipes, since no column says
  // otherwise.
  c.expert = std::max(1, whole(r, "ep", 1));
  c.chunks = whole(r, "vpp", 1);
  c.micro_batch = whole(r, "micro_batch", 1);
  c.sequence = text(r, "sp") == "y" && c.tensor > 1;
  c.sharding = sharding(text(r, "dist_opt"));
  c.recompute = recompute(text(r, "recompute"));
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

struct Prediction {
  double seconds = 0, gigabytes = 0;
  double fullness = 0;  // the memory needed, as a share of what the device has
  bool fits() const { return fullness <= 1; }
};

double of_kind(const MemoryEstimate& estimate, const std::string& kind) {
  if (kind == "analytic")
    return estimate.parameters + estimate.gradients + estimate.optimizer + estimate.activations;
  if (kind == "max_allocated") return estimate.allocated();
  return kind == "max_reserved" ? estimate.reserved() : estimate.device();
}

Prediction predict(const PlanProblem& p, const Candidate& c, const std::string& kind) {
  const LayerPrice price = price_layer(p, shape_of(c));
  const Layout layout = layout_of(p, c, price);
  const WorstStage worst = worst_stage(p, c, price, layout);
  return {step_time(p, c, price, layout).total(),
          std::min(of_kind(worst.estimate, kind), kind == "analytic" ? 1e15 : p.machine.device.memory) / 1e9,
          worst.estimate.needed() / usable_memory(p)};
}

bool expressible(const Record& r) {
  const std::string& arch = text(r, "arch");
  for (const char* size : {"tp", "pp", "cp", "ep", "vpp"})
    if (whole(r, size, 1) < 1) return false;
  for (const char* size : {"gpus", "layers", "seq"})
    if (whole(r, size) < 1) return false;
  if (has_experts(r)) {
    const auto shape = mixture(text(r, "model"));
    const int stages = std::max(1, whole(r, "pp", 1)), ranks = whole(r, "gpus") / stages;
    return shape && shape->hidden == whole(r, "hidden") && ranks > 0 &&
           ranks % std::max(1, whole(r, "ep", 1)) == 0;
  }
  return (arch == "gpt" || arch == "llama") && number(r, "heads") > 0 && number(r, "ffn") > 0 &&
         number(r, "hidden") > 0;
}

/// For a row without a micro-batch: the best prediction over the micro-batches 1, 2, 4 and 8 and, if the row
/// gives no number of model chunks either, over the possible numbers of chunks.
Prediction predict_best(const Record& r, const PlanProblem& p) {
  Prediction best;
  for (int micro : {1, 2, 4, 8}) {
    Record row = r;
    row["micro_batch"] = std::to_string(micro);
    const int pipeline = whole(r, "pp", 1), per_stage = p.model.layers / pipeline;
    for (int chunks = 1; chunks <= (text(r, "vpp").empty() && pipeline > 1 ? per_stage : 1); ++chunks) {
      Candidate c = candidate(row, p);
      if (text(r, "vpp").empty()) c.chunks = chunks;
      if (per_stage % c.chunks != 0 || c.microbatches % (c.chunks > 1 ? pipeline : 1) != 0) continue;
      if (c.microbatches * c.micro_batch * c.data != c.global_batch) continue;
      const Prediction one = predict(p, c, text(r, "mem_kind"));
      const bool better = one.fits() != best.fits() ? one.fits() : one.seconds < best.seconds;
      if (best.seconds == 0 || better) best = one;
    }
  }
  return best;
}

Prediction predict(const Record& r, const Coefficients& k) {
  if (!expressible(r)) return {};
  PlanProblem p = problem(r);  // throws kUsage for a device that is not in docs/gpus.yaml
  p.coefficients = &k;
  if (number(r, "micro_batch") > 0 && number(r, "global_batch") > 0)
    return predict(p, candidate(r, p), text(r, "mem_kind"));
  return number(r, "global_batch") > 0 ? predict_best(r, p) : Prediction{};
}

/// Predicts one row. A row that cannot be priced is left empty, and the others are still priced. If a file of
/// the program cannot be read, the program ends, since every row would be empty.
Prediction predict_or_say(size_t row, const Record& r, const Coefficients& k) {
  try {
    return predict(r, k);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUsage && error.kind() != ErrorKind::kData) throw;
    std::fprintf(stderr, "row %zu is left empty: %s\n", row, error.what());
    return {};
  }
}

class CoefficientSets {
 public:
  void one(const std::string& file) { all_ = read_coefficients(file, all_); }
  void folder(const std::string& path) { folder_ = path; }
  const Coefficients& of(const std::string& eval_class) {
    const auto known = by_class_.find(eval_class);
    if (known != by_class_.end()) return known->second;
    const std::string file = folder_ + "/" + eval_class + ".txt";
    const bool there = !folder_.empty() && file_exists(file);
    return by_class_.emplace(eval_class, there ? read_coefficients(file, all_) : all_).first->second;
  }

 private:
  Coefficients all_ = fitted_coefficients();
  std::string folder_;
  std::map<std::string, Coefficients> by_class_;
};

std::string csv_line(size_t row, const Prediction& x, double spread) {
  if (x.seconds <= 0) return concat(row, ",,,,,,\n");
  return concat(row, ',', format_double(x.seconds), ',', format_double(x.gigabytes), ',',
                x.fits() ? 'y' : 'n', ',', format_double(x.seconds / (1 + spread)), ',',
                format_double(x.seconds * (1 + spread)), ',', format_double(x.fullness), '\n');
}

struct Errors {
  std::vector<double> time, memory;  // predicted / measured
};

std::string summary(const std::vector<double>& ratios) {
  if (ratios.empty()) return "null";
  double error = 0;
  for (double ratio : ratios) error += std::fabs(ratio - 1) / static_cast<double>(ratios.size());
  return concat("{\"rows\": ", ratios.size(), ", \"mape\": ", format_fixed(100 * error, 1),
                ", \"median_ratio\": ", format_fixed(median_of_few(ratios), 3), "}");
}

int main_of(const std::string& table, const std::string& output, CoefficientSets& sets) {
  std::string csv = "row,iter_time_s,memory_gb,fits,iter_time_lo_s,iter_time_hi_s,fullness\n";
  std::map<std::string, Errors> classes;
  const std::vector<Record> records = load(table);
  for (size_t i = 0; i < records.size(); ++i) {
    const Record& r = records[i];
    const Coefficients& k = sets.of(text(r, "eval_class"));
    const Prediction x = predict_or_say(i, r, k);
    csv += csv_line(i, x, k.spread);
    if (x.seconds <= 0) continue;
    Errors& errors = classes[text(r, "eval_class")];
    if (number(r, "iter_time_s") > 0) errors.time.push_back(x.seconds / number(r, "iter_time_s"));
    if (number(r, "peak_mem_gb") > 0) errors.memory.push_back(x.gigabytes / number(r, "peak_mem_gb"));
  }
  if (!output.empty()) write_file(output, csv);
  for (const auto& [name, errors] : classes)
    std::printf("{\"class\": \"%s\", \"time\": %s, \"memory\": %s}\n", name.c_str(),
                summary(errors.time).c_str(), summary(errors.memory).c_str());
  return 0;
}

int list_coefficients() {
  std::puts("name,unit,prior,width,low,high,fitted,meaning");
  for (const CoefficientInfo& info : coefficient_table())
    std::printf("%s,%s,%g,%g,%g,%g,%g,\"%s\"\n", info.name, info.unit, info.prior, info.width, info.low,
                info.high, fitted_coefficients().*info.member, info.meaning);
  return 0;
}

int usage() {
  std::fprintf(stderr,
               "usage: bench_plan_accuracy FILE.csv [--predictions OUT.csv] [--coefficients FILE | "
               "--coefficients-by-class FOLDER]\n       bench_plan_accuracy --list\n");
  return 64;
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  if (argc == 2 && std::string(argv[1]) == "--list") return list_coefficients();
  if (argc < 2 || argc % 2 != 0) return usage();
  try {
    std::string output;
    CoefficientSets sets;
    for (int i = 2; i + 1 < argc; i += 2) {
      const std::string option = argv[i];
      if (option == "--predictions")
        output = argv[i + 1];
      else if (option == "--coefficients")
        sets.one(argv[i + 1]);
      else if (option == "--coefficients-by-class")
        sets.folder(argv[i + 1]);
      else
        return usage();
    }
    return main_of(argv[1], output, sets);
  } catch (const Error& e) {
    std::fprintf(stderr, "bench_plan_accuracy: %s\n", e.what());
    return exit_code(e.kind());
  }
}
