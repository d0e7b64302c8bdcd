#include "libcore/convert/targets/megatron.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/params_io.h"
#include "libcore/checkpoint/torch/torch_layout.h"
#include "libcore/config/activations.h"
#include "libcore/config/parallel_config.h"
#include "libcore/convert/output/output_check.h"
#include "libcore/convert/sources/tokenizer_folder.h"
#include "libcore/convert/targets/megatron_pickle.h"
#include "libcore/hash/crc32.h"
#include "libcore/io/files/file.h"
#include "libcore/io/streams/stop_signal.h"
#include "libcore/model/stage.h"
#include "libcore/parallel/stage_table.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
constexpr const char* kLayerPrefix = "decoder.layers.";

// The position in the layout of the rank that writes a file.
struct FileRank {
  int tensor, pipeline;
};

// The name of a rank's folder: mp_rank_01 or, with a pipeline, mp_rank_01_002.
std::string rank_folder(FileRank writer, const MegatronLayout& layout) {
  char name[64];
  if (layout.pipeline == 1)
    std::snprintf(name, sizeof name, "mp_rank_%02d", writer.tensor);
  else
    std::snprintf(name, sizeof name, "mp_rank_%02d_%03d", writer.tensor, writer.pipeline);
  return name;
}

std::vector<FileRank> ranks_of(const MegatronLayout& layout) {
  std::vector<FileRank> ranks;
  for (int pipeline = 0; pipeline < layout.pipeline; ++pipeline)
    for (int tensor = 0; tensor < layout.tensor; ++tensor) ranks.push_back({tensor, pipeline});
  return ranks;
}

ParallelConfig parallel_config(const MegatronLayout& layout) {
  ParallelConfig parallel;
  parallel.tensor = layout.tensor;
  parallel.pipeline = layout.pipeline;
  parallel.finish();
  return parallel;
}

/// Rotations that Megatron-LM's options do not express: its --use-rope-scaling has LLaMA 3.1's values built
/// in, and it takes only an interval that divides the layers (core/transformer/transformer_config.py).
void add_missing_rotations(const ModelConfig& c, Problems& problems) {
  if (c.rope_type != RopeType::kDefault)
    problems.add("Megatron's options know no rotary scaling of the type ", enum_name(c.rope_type),
                 ", which the model has; write another format");
  if (c.rope_scaling && (c.rope_low_freq != 1 || c.rope_high_freq != 4 || c.rope_original_positions != 8192))
    problems.add(
        "Megatron knows rotary scaling with low_freq_factor 1, high_freq_factor 4 and 8192 original "
        "positions "
        "only; the model has ",
        c.rope_low_freq, ", ", c.rope_high_freq, " and ", c.rope_original_positions);
  if (c.no_rope_freq > 0 && c.layers % c.no_rope_freq != 0)
    problems.add("Megatron's --no-rope-freq must divide the number of layers; the model has ", c.layers,
                 " layers, and its --no-rope-freq is ", c.no_rope_freq, "; write another format");
}

/// The parts that the model has and megatron-core 0.16.1's GPTModel lacks.
void add_missing_parts(const ModelConfig& config, Problems& problems) {
  const auto lacks = [&](const auto&... what) {
    problems.add("Megatron-LM's GPTModel has no ", what..., ": write another format");
  };
  if (!has_megatron_activation(config))
    problems.add("Megatron-LM has no option for the activation ", hf_name(config.activation()),
                 "; it knows GELU, squared ReLU and SwiGLU: write another format");
  if (config.parallel_residual)
    problems.add(
        "Megatron's GPTModel has no parallel branches: its feed-forward block reads the attention's sum, but "
        "the model has --parallel-residual; write another format");
  if (config.norms_after())
    lacks("norms after attention and feed-forward block (", Opt{"norm-placement"}, ' ',
          enum_name(config.norm_placement), ')');
  if (config.qk_norm_all_heads)
    lacks("norm over all heads of the queries or keys (", Opt{"qk-norm-all-heads"}, ')');
  for (const std::string& multiplier : config.multipliers()) lacks("multiplier (", multiplier, ')');
  add_missing_rotations(config, problems);
}

void add_layout_problems(const ModelConfig& config, const MegatronLayout& layout, Problems& problems) {
  const ParallelConfig parallel = parallel_config(layout);
  parallel.validate(problems);
  parallel.validate(config, problems);
}

void check_layout(const ModelConfig& config, const MegatronLayout& layout) {
  Problems missing, problems;
  add_missing_parts(config, missing);
  if (!missing.empty()) fail(ErrorKind::kData, missing.text("; "));
  add_layout_problems(config, layout, problems);
  if (!problems.empty()) fail(ErrorKind::kUsage, problems.text("; "));
}

Layers layers_of(const ModelConfig& config, const MegatronLayout& layout, int pipeline) {
  const LayerRange range = StageTable(config.layers, parallel_config(layout)).range(pipeline);
  return {.first = range.first,
          .count = range.count,
          .embedding = pipeline == 0,
          .head = pipeline == layout.pipeline - 1};
}

// Gives a norm's parameters their names in Transformer Engine, where they belong to the linear layer that
// follows the norm.
std::string engine_name(std::string name) {
  for (const auto& [norm, linear] : {std::pair{"input_layernorm.", "self_attention.linear_qkv.layer_norm_"},
                                     {"pre_mlp_layernorm.", "mlp.linear_fc1.layer_norm_"}})
    if (const size_t at = name.find(norm); at != std::string::npos)
      name.replace(at, std::string_view(norm).size(), linear);
  return name;
}

// The name that our parameter has in a rank's file. There, layers are numbered within the stage.
std::string rank_name(const std::string& ours, int first_layer, const MegatronLayout& layout) {
  std::string name = ours;
  if (const std::string_view prefix = kLayerPrefix; name.starts_with(prefix)) {
    const size_t dot = name.find('.', prefix.size());
    const auto layer = parse_int(std::string_view(name).substr(prefix.size(), dot - prefix.size()));
    name = concat(prefix, *layer - first_layer, name.substr(dot));
  }
  return layout.engine ? engine_name(name) : name;
}

bool is_qkv_bias(const std::string& name) {
  return name.ends_with("linear_qkv.bias");
}

// The recipe for the part of a tensor that a rank holds.
Recipe recipe_of(const Param& param, bool vector, int64_t rows_on_a_rank) {
  const ParamShare share = share_of(param);
  const int last = param.global.rank - 1;
  Recipe recipe{.source = share.box.name, .form = {share.box.global, vector}, .of_rank = true, .how = "copy"};
  const int64_t column = vector ? 0 : share.box.offset[last], columns = vector ? 1 : share.extent[last];
  if (share.extent.elements() > 0)
    for_each_row_run(recipe.form, share.box.offset, share.extent, [&](int64_t row, int64_t rows, int64_t) {
      recipe.blocks.push_back({row, rows, column, columns});
    });
  else  // the rank holds only padding
    recipe.blocks.push_back({recipe.form.rows(), 0, column, columns});
  recipe.repeated = rows_on_a_rank - recipe.rows();
  if (param.shard_axis != kWhole && share.extent != param.global)
    recipe.how = concat(param.shard_axis == last && !vector ? "columns " : "rows ", param.offset, " to ",
                        param.offset + param.local[param.shard_axis] - 1, " of axis ", param.shard_axis);
  if (recipe.repeated > 0) recipe.how += concat(", ", recipe.repeated, " rows of padding");
  return recipe;
}

// The number of rows that a parameter has in a rank's file. Megatron pads the vocabulary even on a single
// rank.
int64_t rows_on_a_rank(const Param& param, bool vector, const Conversion& conversion,
                       const MegatronLayout& layout) {
  const std::string name = share_of(param).box.name;
  if (name == "embedding.word_embeddings.weight" || name == "output_layer.weight")
    return conversion.source.config().padded_vocab(layout.tensor) / layout.tensor;
  return vector ? param.local.elements() : param.local.rows();
}

OutputTensor output_of(const Param& param, const std::string& name, const Conversion& conversion,
                       const MegatronLayout& layout) {
  const bool vector = name.ends_with("bias") || param.global.rank == 1;
  Recipe recipe = recipe_of(param, vector, rows_on_a_rank(param, vector, conversion, layout));
  const Shape shape = vector ? Shape{recipe.rows()} : Shape{recipe.rows(), recipe.columns()};
  const StoredTensor* stored = conversion.file().find(recipe.source);
  if (!stored && !is_qkv_bias(param.name))
    stored = &conversion.file().at(recipe.source);  // throws an error that names the most similar tensor
  if (!stored) {
    recipe.source.clear();
    recipe.how = "zeros";
  }
  return {name, storage_of(stored ? conversion.dtype_of(*stored) : conversion.main_dtype()), shape, recipe};
}

// Computes OutputTensor::depth. Parameters of a stage come after those of earlier stages. The parts of one
// parameter on different ranks follow each other. A tied head's copy of the embedding follows the embedding,
// since a reader first compares these two.
size_t depth_of(const Param& param, size_t number, FileRank writer, const MegatronLayout& layout) {
  constexpr size_t kMaxParams = size_t{1} << 20;
  const size_t at = param.tie.empty() ? static_cast<size_t>(writer.pipeline) * kMaxParams + number : 0;
  return at * static_cast<size_t>(layout.tensor) + static_cast<size_t>(writer.tensor);
}

// The place of a parameter among those of its layer. Megatron's modules register the output projection of
// attention before its QKV, and the optimizer numbers the parameters in that order.
int module_of(const std::string& name) {
  constexpr const char* kModules[] = {"input_layernorm.", "self_attention.linear_proj.",
                                      "self_attention.linear_qkv."};
  constexpr int kRest = 3;
  for (int i = 0; i < kRest; ++i)
    if (name.find(kModules[i]) != std::string::npos) return i;
  return kRest;
}

void put_in_megatrons_order(std::vector<OutputTensor>& tensors) {
  const auto layer_of = [](const OutputTensor& tensor) {
    if (!tensor.name.starts_with(kLayerPrefix)) return std::string_view();
    return std::string_view(tensor.name)
        .substr(0, tensor.name.find('.', std::string_view(kLayerPrefix).size()));
  };
  for (auto begin = tensors.begin(); begin != tensors.end();) {
    const auto end = std::find_if(begin, tensors.end(), [&](const OutputTensor& tensor) {
      return layer_of(tensor) != layer_of(*begin);
    });
    if (!layer_of(*begin).empty())
      std::stable_sort(begin, end, [](const OutputTensor& a, const OutputTensor& b) {
        return module_of(a.name) < module_of(b.name);
      });
    begin = end;
  }
}

// Adds the moments and the masters. They are sharded over the ranks as the parameters are, since a rank
// updates the parameters that it holds. If our model does not have a bias that the file needs, its moments
// are zeros.
void add_optimizer(MegatronRankFile& rank, const Conversion& conversion) {
  for (const char* kind : {"m.", "v.", "master."})
    for (size_t i = 0; i < rank.params; ++i) {
      OutputTensor tensor = rank.file.tensors[i];
      if (std::string_view(kind) == "master." && plain_type(tensor.storage) == DType::kF32) return;
      tensor.name = concat(kOptimizerPrefix, kind, tensor.name);
      tensor.storage = Storage::kF32;
      if (!tensor.recipe.source.empty()) {
        tensor.recipe.source = concat(kOptimizerPrefix, kind, tensor.recipe.source);
        conversion.file().at(tensor.recipe.source);  // throws an error that names the most similar tensor
      }
      rank.file.tensors.push_back(std::move(tensor));
    }
}

MegatronRankFile plan_rank(const Conversion& conversion, const MegatronLayout& layout, FileRank writer) {
  const ModelConfig config = with_qkv_bias(conversion.source.config());
  const Layers layers = layers_of(config, layout, writer.pipeline);
  ParamTable table;
  const Stage stage(config, layers, {.rank = writer.tensor, .size = layout.tensor}, table);
  MegatronRankFile rank{.file = {.name = concat(rank_folder(writer, layout), "/model_optim_rng.pt")},
                        .rank = writer.pipeline * layout.tensor + writer.tensor};
  std::vector<OutputTensor>& tensors = rank.file.tensors;
  for (const Param& param : table.all())
    if (param.tie.empty() || layout.pipeline > 1) {  // in a single stage, a tied head has no copy of its own
      tensors.push_back(output_of(param, rank_name(param.name, layers.first, layout), conversion, layout));
      tensors.back().depth = depth_of(param, tensors.size() - 1, writer, layout);
    }
  put_in_megatrons_order(tensors);
  rank.params = tensors.size();
  return rank;
}

std::vector<MegatronRankFile> plan_ranks(const Conversion& conversion, const MegatronLayout& layout) {
  check_layout(conversion.source.config(), layout);
  std::vector<MegatronRankFile> ranks;
  for (const FileRank writer : ranks_of(layout)) ranks.push_back(plan_rank(conversion, layout, writer));
  return ranks;
}

OutputPlan files_of(const std::vector<MegatronRankFile>& ranks, const std::string& folder) {
  OutputPlan plan;
  for (const MegatronRankFile& rank : ranks) {
    plan.push_back(rank.file);
    plan.back().name = (fs::path(folder) / rank.file.name).string();
  }
  return plan;
}

// The bytes of the loss scale, one number, which follows the tensors. Empty if there is none.
std::string scale_bytes(const MegatronRun& run) {
  if (!run.loss_scale) return {};
  const auto scale = static_cast<float>((*run.loss_scale)["scale"].as_double());
  return {reinterpret_cast<const char*>(&scale), sizeof scale};
}

TorchLayout layout_of(const OutputFile& file, const std::string& pickle, const MegatronRun& run) {
  std::vector<uint64_t> storages;
  for (const OutputTensor& tensor : file.tensors) storages.push_back(tensor.bytes());
  if (run.loss_scale) storages.push_back(scale_bytes(run).size());
  return {fs::path(file.name).stem().string(), pickle, storages};
}

// A checkpoint that is being written.
struct Writing {
  OutputPlan plan;
  std::vector<std::string> pickles;  // parallel to `plan`, as are all members below it
  std::vector<TorchLayout> layouts = {};
  std::vector<PlacedFile> placed = {};
  std::vector<std::vector<uint32_t>> sums = {};  // for each file, the checksums of its storages
};

// Creates all files below `folder`, without the tensors and their checksums.
void create_files(Writing& w, const MegatronRun& run, const fs::path& folder, PlacedFiles& files) {
  for (size_t i = 0; i < w.plan.size(); ++i) {
    const OutputFile& file = w.plan[i];
    const fs::path path = folder / file.name;
    make_directories(path.parent_path());
    const TorchLayout& layout = w.layouts.emplace_back(layout_of(file, w.pickles[i], run));
    PlacedFile placed{.number = files.create(path.string(), layout.size()), .offsets = {}};
    w.sums.emplace_back(file.tensors.size());
    if (const std::string scale = scale_bytes(run); !scale.empty()) {
      w.sums.back().push_back(crc32(0, scale.data(), scale.size()));
      files.put(placed.number, {{layout.offset(file.tensors.size()), scale}});
    }
    files.put(placed.number, layout.parts(w.sums.back()));
    for (size_t t = 0; t < file.tensors.size(); ++t) placed.offsets.push_back(layout.offset(t));
    w.placed.push_back(std::move(placed));
  }
}

void write_all(Writing& w, const TensorFile& source, PlacedFiles& files) {
  write_tensors(source, w.plan, w.placed, files,
                [&](size_t file, size_t tensor, std::span<const std::byte> bytes) {
                  w.sums[file][tensor] = crc32(w.sums[file][tensor], bytes.data(), bytes.size());
                });
  for (size_t i = 0; i < w.plan.size(); ++i) files.put(w.placed[i].number, w.layouts[i].parts(w.sums[i]));
}

std::vector<std::string> pickles_of(const std::vector<MegatronRankFile>& ranks, const Conversion& conversion,
                                    const MegatronLayout& layout, const MegatronRun& run) {
  std::vector<std::string> pickles;
  for (const MegatronRankFile& rank : ranks) pickles.push_back(pickle_of(rank, conversion, layout, run));
  return pickles;
}

void write_tokenizer(const Conversion& conversion, const fs::path& root) {
  const TokenizerFolder& from = conversion.tokenizer_folder;
  if (from.empty()) return;
  make_directories(root / kTokenizerFolder);
  for (const auto& [name, contents] : tokenizer_files_of(from, conversion.source.config().vocab_size))
    write_file((root / kTokenizerFolder / name).string(), contents);
}

}  // namespace

bool has_megatron_activation(const ModelConfig& config) {
  const ActivationFunction function = config.activation();
  return config.swiglu || function == ActivationFunction::kGeluTanh ||
         function == ActivationFunction::kGelu || function == ActivationFunction::kSquaredRelu;
}

std::string no_megatron_layout(const ModelConfig& config, const MegatronLayout& layout) {
  Problems problems;
  add_layout_problems(config, layout, problems);
  add_missing_parts(config, problems);
  return problems.text("; ");
}

OutputPlan plan_megatron(const Conversion& conversion, const MegatronLayout& layout) {
  return files_of(plan_ranks(conversion, layout), iteration_folder(kRelease));
}

void export_megatron(const Conversion& conversion, const std::string& output, const MegatronLayout& layout) {
  refuse_used(output, conversion.overwrite);
  const std::vector<MegatronRankFile> ranks = plan_ranks(conversion, layout);
  Writing writing{files_of(ranks, iteration_folder(kRelease)), pickles_of(ranks, conversion, layout, {})};
  PlacedFiles files(memory_for(writing.plan));
  OutputCheck check(conversion);
  AtomicDirectory folder(output);
  write_tokenizer(conversion, folder.path());
  write_file((folder.path() / kTrackerFile).string(), "release");
  create_files(writing, {}, folder.path(), files);
  const SourceOptions options{.vocab_size = conversion.source.config().vocab_size,
                              .crc = CrcCheck::kNo,  // since the checksums are written last
                              .writing = &files};
  if (check.wanted()) {
    // The model is opened now, before the checksums are written. If it were opened later, the files might
    // change while they are read.
    const auto written = std::make_shared<const ModelSource>(folder.path().string(), options);
    check.follow(files, [written](const CheckRun& run) { return checked_side(written->view(), run); });
  }
  write_all(writing, conversion.file(), files);
  folder.sync();
  check.compare_followed(conversion.rounds());
  folder.commit();
}

std::string export_megatron_run(const Conversion& conversion, const std::string& root,
                                const MegatronLayout& layout, const MegatronRun& run) {
  const HoldStop until_saved;
  std::vector<MegatronRankFile> ranks = plan_ranks(conversion, layout);
  if (run.optimizer())
    for (MegatronRankFile& rank : ranks) add_optimizer(rank, conversion);
  Writing writing{files_of(ranks, ""), pickles_of(ranks, conversion, layout, run)};
  PlacedFiles files(memory_for(writing.plan));
  const fs::path target = fs::path(root) / iteration_folder(run.iteration);
  AtomicDirectory folder(target);
  create_files(writing, run, folder.path(), files);
  write_all(writing, conversion.file(), files);
  write_tokenizer(conversion, root);
  folder.commit();
  write_file((fs::path(root) / kTrackerFile).string(), std::to_string(run.iteration));
  return target.string();
}

}  // namespace megalith
