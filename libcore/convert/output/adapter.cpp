#include "libcore/convert/output/adapter.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/elements.h"
#include "libcore/checkpoint/safetensors/safetensors.h"
#include "libcore/checkpoint/views/rows.h"
#include "libcore/convert/sources/hf_config.h"
#include "libcore/convert/sources/settings.h"
#include "libcore/io/files/file.h"
#include "libcore/json/small_json.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
constexpr const char* kConfig = "adapter_config.json";
constexpr const char* kWeights = "adapter_model.safetensors";
constexpr std::string_view kModelPrefix = "base_model.model.";
constexpr std::string_view kA = ".lora_A.weight", kB = ".lora_B.weight";
constexpr const char* kPrompt = "prompt_embeddings";

// Settings of peft that change what an adapter computes. They are not supported, so they must be off.
constexpr const char* kMustBeOff[] = {"use_dora",
                                      "use_qalora",
                                      "use_bdlora",
                                      "lora_bias",
                                      "modules_to_save",
                                      "layer_replication",
                                      "megatron_config",
                                      "trainable_token_indices",
                                      "target_parameters",
                                      "prefix_projection",
                                      "alora_invocation_tokens",
                                      "arrow_config",
                                      "velora_config",
                                      "kasa_config",
                                      "monteclora_config"};

/// What init_lora_weights of peft does to the matrix that an adapter is added to.
enum class BaseChange : uint8_t { kNone, kConvertible, kQuantized };

/// The initialisations of peft by the word with which their names begin.
constexpr std::pair<std::string_view, BaseChange> kInitialisations[] = {
    {"gaussian", BaseChange::kNone},     {"eva", BaseChange::kNone},
    {"orthogonal", BaseChange::kNone},   {"mica", BaseChange::kNone},
    {"pissa", BaseChange::kConvertible}, {"corda", BaseChange::kConvertible},
    {"olora", BaseChange::kConvertible}, {"lora_ga", BaseChange::kConvertible},
    {"loftq", BaseChange::kQuantized}};

bool is_off(const Json& value) {
  return value.is_null() || (value.is_bool() && !value.as_bool()) ||
         (value.is_array() && value.as_array().empty()) || (value.is_object() && value.as_object().empty());
}

// A number that fp32 holds.
double finite(const Settings& settings, const char* key, const Json& value) {
  if (!value.is_number()) settings.refuse(quote(key), " is ", value.dump(), ", wanted a number");
  if (!std::isfinite(static_cast<float>(value.as_double())))
    settings.refuse(quote(key), " is ", value.dump(), ", wanted a finite number of fp32");
  return value.as_double();
}

double alpha_of(const Settings& settings) {
  constexpr const char* kAlpha = "lora_alpha";
  const Json* value = settings.find(kAlpha);
  if (!value) settings.refuse("has no ", quote(kAlpha));
  return finite(settings, kAlpha, *value);
}

// The value that a pattern gives to a module. As in peft, a pattern fits a module if it equals the module's
// whole name or its last components.
std::optional<double> from_pattern(const Settings& settings, const char* key, const std::string& module) {
  const Json* patterns = settings.find(key);
  if (!patterns) return {};
  if (!patterns->is_object()) settings.refuse(quote(key), " is ", patterns->dump(), ", wanted an object");
  for (const auto& [name, value] : patterns->as_object()) {
    if (name.find_first_of("*+?()[]|^$\\") != std::string::npos)
      settings.refuse(quote(key), " holds the pattern ", quote(name),
                      "; only names of modules are supported");
    if (module == name || module.ends_with("." + name)) return finite(settings, key, value);
  }
  return {};
}

/// Refuses an adapter that peft adds to other matrices than the model's: some initialisations take from each
/// matrix what the adapter begins with (PiSSA, CorDA, OLoRA, LoRA-GA), or round it (LoftQ).
void refuse_changed_base(const Settings& settings) {
  constexpr const char* kInit = "init_lora_weights";
  const Json* const value = settings.find(kInit);
  if (!value || value->is_bool() || value->is_null()) return;
  const std::string word = lower_ascii(settings.text(kInit, ""));
  const auto found = std::find_if(std::begin(kInitialisations), std::end(kInitialisations),
                                  [&](const auto& one) { return word.starts_with(one.first); });
  if (found == std::end(kInitialisations))
    settings.refuse(quote(kInit), " is ", value->dump(), ", which is not known; save the adapter after ",
                    "merge_and_unload() of peft, as a model");
  if (found->second == BaseChange::kNone) return;
  settings.refuse(quote(kInit), " ", value->dump(),
                  " changes the model's own matrices, so that the adapter does not fit the model; ",
                  found->second == BaseChange::kQuantized
                      ? "save the model after merge_and_unload() of peft, and give that as the model"
                      : "save the adapter with peft's path_initial_model_for_weight_conversion, which makes "
                        "it one for the model itself");
}

std::string with_end(std::string_view module, std::string_view end) {
  return concat(kModelPrefix, module, end);
}

}  // namespace

bool is_adapter(const std::string& path) {
  return fs::is_directory(path) && file_exists(path + "/" + kConfig);
}

AdapterKind adapter_kind(const std::string& path) {
  AdapterKind out;
  if (!is_adapter(path)) return out;
  try {
    const Json config = load_own_small(path + "/" + kConfig);
    if (const Json* kind = config.find("peft_type"); kind && kind->is_string()) out.name = kind->as_string();
    if (const Json* positions = config.find("num_virtual_tokens"); positions && positions->is_int())
      out.positions = positions->as_int();
  } catch (const Error&) {
    // here, an error is not reported: the constructor of Adapter reports it
  }
  return out;
}

Adapter::Adapter(const std::string& folder)
    : folder_(folder), config_(load_own_small(folder + "/" + kConfig)) {
  const Settings settings(config_, folder + "/" + kConfig);
  kind_ = settings.text("peft_type", "");
  if (kind_ != kPeftLora && kind_ != kPeftPrefix)
    settings.refuse("\"peft_type\" is ", quote(kind_), "; ", kPeftLora, " and ", kPeftPrefix, " can be read");
  for (const char* key : kMustBeOff)
    if (const Json* value = config_.find(key); value && !is_off(*value))
      settings.refuse(quote(key), " ", value->dump(), " is not supported");
  if (const std::string bias = settings.text("bias", ""); kind_ == kPeftLora && bias != "none")
    settings.refuse("\"bias\" ", quote(bias), " is not supported; only none is");
  if (kind_ == kPeftLora) refuse_changed_base(settings);
  tensors_ = std::make_unique<SafetensorsFile>(folder + "/" + kWeights);
  for (const StoredTensor& tensor : tensors_->tensors())
    if (!tensor.dtype || !convertible(*tensor.dtype, DType::kF32))
      fail(ErrorKind::kData, tensors_->path(), ": tensor ", quote(tensor.name), " is ", tensor.dtype_name,
           ", which is not a type of parameters");
  if (kind_ == kPeftLora)
    find_modules();
  else
    check_prefix();
}

void Adapter::set_scale(Module& module) const {
  const Settings settings(config_, folder_ + "/" + kConfig);
  const auto rank = static_cast<double>(module.rank);
  const double wanted = from_pattern(settings, "rank_pattern", module.name).value_or(settings.count("r"));
  if (wanted != rank)
    settings.refuse("the rank of ", quote(module.name), " is ", wanted, ", but its matrices have ",
                    module.rank);
  module.alpha = from_pattern(settings, "alpha_pattern", module.name).value_or(alpha_of(settings));
  module.scale = module.alpha / (settings.flag("use_rslora", false) ? std::sqrt(rank) : rank);
}

void Adapter::find_modules() {
  for (const StoredTensor& tensor : tensors_->tensors()) {
    const std::string_view name = tensor.name;
    const bool a = name.ends_with(kA), b = name.ends_with(kB);
    if (!name.starts_with(kModelPrefix) || !(a || b))
      fail(ErrorKind::kData, tensors_->path(), ": tensor ", quote(name), " is not a matrix of LoRA; wanted ",
           kModelPrefix, "MODULE", kA, " and ", kB);
    const std::string module(name.substr(kModelPrefix.size(), name.size() - kModelPrefix.size() - kA.size()));
    const StoredTensor& first = tensors_->at(with_end(module, kA));
    const StoredTensor& second = tensors_->at(with_end(module, kB));
    if (first.extents.size() != 2 || second.extents.size() != 2 || first.extents[0] != second.extents[1] ||
        first.extents[0] < 1)
      fail(ErrorKind::kData, tensors_->path(), ": the matrices of ", quote(module), " are ", first.shape(),
           " and ", second.shape(), ", wanted [rank, in] and [out, rank]");
    if (!a) continue;
    modules_.push_back({.name = module,
                        .a = first.name,
                        .b = second.name,
                        .rank = first.extents[0],
                        .in = first.extents[1],
                        .out = second.extents[0],
                        .alpha = 0,
                        .scale = 0});
    set_scale(modules_.back());
  }
  if (modules_.empty()) fail(ErrorKind::kData, tensors_->path(), ": holds no matrices");
}

void Adapter::check_prefix() const {
  const Settings settings(config_, folder_ + "/" + kConfig);
  const StoredTensor& prompt = tensors_->at(kPrompt);
  const int64_t tokens = settings.count("num_virtual_tokens"), layers = settings.count("num_layers");
  if (tensors_->tensors().size() != 1)
    fail(ErrorKind::kData, tensors_->path(), ": holds ", tensors_->tensors().size(), " tensors, wanted only ",
         quote(kPrompt));
  if (prompt.extents.size() != 2 || prompt.extents[0] != tokens || prompt.extents[1] % (2 * layers) != 0)
    fail(ErrorKind::kData, tensors_->path(), ": ", quote(kPrompt), " is ", prompt.shape(), ", wanted ",
         tokens, " virtual tokens by keys and values of ", layers, " layers");
}

namespace {

// What an adapter adds to some rows of one of our tensors.
struct Delta {
  const Adapter::Module* module;
  std::vector<RowRun> runs;
};

class MergedTensors final : public TensorFile {
 public:
  MergedTensors(const TensorFile& base, const ModelConfig& config, const Adapter& adapter);

  const std::string& path() const override { return base_.path(); }
  const std::vector<StoredTensor>& tensors() const override { return base_.tensors(); }
  void read(const Box& box, View out) const override;

 private:
  void add(const Delta& delta, MatrixBlock block, float* to) const;

  const TensorFile& base_;
  const Adapter& adapter_;
  std::map<std::string, std::vector<Delta>> deltas_;  // by our name
};

MergedTensors::MergedTensors(const TensorFile& base, const ModelConfig& config, const Adapter& adapter)
    : base_(base), adapter_(adapter) {
  std::map<std::string, const Adapter::Module*> left;
  for (const Adapter::Module& module : adapter.modules()) left[module.name + ".weight"] = &module;
  for (const RenamedTensor& renamed : renamed_tensors(family_of(config).names, config))
    for (size_t part = 0; part < renamed.theirs.size(); ++part) {
      const auto found = left.find(renamed.theirs[part].name);
      if (found == left.end()) continue;
      const Adapter::Module& module = *found->second;
      const PartRows rows = part_rows(renamed, part);
      if (module.out != rows.rows() || module.in != rows.columns)
        fail(ErrorKind::kData, adapter.path(), ": module ", quote(module.name), " takes ", module.in,
             " and gives ", module.out, " values, the model's takes ", rows.columns, " and gives ",
             rows.rows());
      deltas_[renamed.ours].push_back({&module, rows.runs});
      left.erase(found);
    }
  if (!left.empty())
    fail(ErrorKind::kData, adapter.path(), ": module ", quote(left.begin()->second->name), " is not in the ",
         family_of(config).names.architecture, " of ", base.path());
}

// Adds scale * (B A) to `to` [rows, columns], for the rows and columns of the block.
void MergedTensors::add(const Delta& delta, MatrixBlock block, float* to) const {
  const Adapter::Module& module = *delta.module;
  const TensorFile& file = adapter_.tensors();
  std::vector<float> a(static_cast<size_t>(module.rank * block.columns)),
      sum(static_cast<size_t>(block.columns));
  file.read({module.a, {module.rank, module.in}, {0, block.column}},
            {a.data(), DType::kF32, {module.rank, block.columns}});
  std::vector<float> b;
  for (const RowRun& run : delta.runs) {
    const int64_t begin = std::max(run.ours, block.row),
                  end = std::min(run.ours + run.rows, block.row + block.rows);
    if (begin >= end) continue;
    b.resize(static_cast<size_t>((end - begin) * module.rank));
    file.read({module.b, {module.out, module.rank}, {run.theirs + begin - run.ours, 0}},
              {b.data(), DType::kF32, {end - begin, module.rank}});
    for (int64_t row = begin; row < end; ++row) {
      const float* weights = b.data() + (row - begin) * module.rank;
      std::fill(sum.begin(), sum.end(), 0.0F);
      for (int64_t k = 0; k < module.rank; ++k)
        for (int64_t column = 0; column < block.columns; ++column)
          sum[static_cast<size_t>(column)] += weights[k] * a[static_cast<size_t>(k * block.columns + column)];
      float* out = to + (row - block.row) * block.columns;
      for (int64_t column = 0; column < block.columns; ++column)
        out[column] += static_cast<float>(module.scale) * sum[static_cast<size_t>(column)];
    }
  }
}

void MergedTensors::read(const Box& box, View out) const {
  const auto deltas = deltas_.find(box.name);
  if (deltas == deltas_.end()) return base_.read(box, out);
  checked(box, out);
  std::vector<float> sum(static_cast<size_t>(out.elements()));
  base_.read(box, {sum.data(), DType::kF32, out.shape});
  const int last = box.global.rank - 1;
  const int64_t columns = out.shape[last];
  for_each_row_run({box.global, false}, box.offset, out.shape, [&](int64_t row, int64_t rows, int64_t at) {
    for (const Delta& delta : deltas->second)
      add(delta, {row, rows, box.offset[last], columns}, sum.data() + at * columns);
  });
  convert_elements(out.data, out.dtype, sum.data(), DType::kF32, out.elements());
}

std::string adapter_card(const Adapter& adapter, const std::string& title) {
  const Json* base = adapter.config().find("base_model_name_or_path");
  std::string card = "---\nlibrary_name: peft\npipeline_tag: text-generation\n";
  if (base && base->is_string()) card += concat("base_model: ", json_quote(base->as_string()), "\n");
  return card + concat("---\n\n# ", title, "\n\nAn adapter of kind ", adapter.kind(),
                       " for peft.\n\n```python\nfrom peft import PeftModel\nmodel = "
                       "PeftModel.from_pretrained(base_model, \"PATH_OF_THIS_FOLDER\")\n```\n");
}

}  // namespace

std::unique_ptr<TensorFile> merge_adapter(const TensorFile& base, const ModelConfig& config,
                                          const Adapter& adapter) {
  if (adapter.kind() != kPeftLora)
    fail(ErrorKind::kUsage, adapter.path(), ": an adapter of kind ", adapter.kind(),
         " does not change weights, so it cannot be merged; convert it by itself");
  return std::make_unique<MergedTensors>(base, config, adapter);
}

OutputPlan plan_adapter(const Adapter& adapter, std::optional<DType> dtype) {
  OutputFile file{.name = kWeights};
  std::vector<TensorSpec> specs;
  for (const StoredTensor& tensor : adapter.tensors().tensors())
    specs.push_back({tensor.name, dtype.value_or(*tensor.dtype), tensor.shape()});
  for (const TensorSpec& spec : in_safetensors_order(specs))
    file.tensors.push_back({spec.name, storage_of(spec.dtype), spec.shape,
                            copy_recipe(spec.name, {spec.shape, spec.shape.rank == 1})});
  return {std::move(file)};
}

void export_adapter(const Adapter& adapter, const std::string& output, std::optional<DType> dtype,
                    bool overwrite) {
  refuse_used(output, overwrite);
  const OutputPlan plan = plan_adapter(adapter, dtype);
  AtomicDirectory folder(output);
  Json config = adapter.config();
  config.set("inference_mode", true);
  write_file((folder.path() / kConfig).string(), config.dump(2) + "\n");
  write_file((folder.path() / "README.md").string(), adapter_card(adapter, title_of(output)));
  PlacedFiles files(memory_for(plan));
  write_tensors(adapter.tensors(), plan, create_safetensors(plan, folder.path().string(), files), files);
  folder.commit();
}

}  // namespace megalith
