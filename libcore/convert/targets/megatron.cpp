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
#include "libcore/config/parallel_config.h"
#include "libcore/convert/output/output_check.h"
#include "libcore/convert/sources/tokenizer_folder.h"
#include "libcore/hash/crc32.h"
#include "libcore/io/file.h"
#include "libcore/model/stage.h"
#include "libcore/parallel/stage_table.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
constexpr const char* kLayerPrefix = "decoder.layers.";
constexpr double kCheckpointVersion = 3.0;

// One rank's place.
struct Place {
  int tensor, pipeline;
};

// mp_rank_01, or mp_rank_01_002 with a pipeline.
std::string rank_folder(Place place, const MegatronLayout& layout) {
  char name[64];
  if (layout.pipeline == 1)
    std::snprintf(name, sizeof name, "mp_rank_%02d", place.tensor);
  else
    std::snprintf(name, sizeof name, "mp_rank_%02d_%03d", place.tensor, place.pipeline);
  return name;
}

std::vector<Place> places_of(const MegatronLayout& layout) {
  std::vector<Place> places;
  for (int pipeline = 0; pipeline < layout.pipeline; ++pipeline)
    for (int tensor = 0; tensor < layout.tensor; ++tensor) places.push_back({tensor, pipeline});
  return places;
}

ParallelConfig parallel_config(const MegatronLayout& layout) {
  ParallelConfig parallel;
  parallel.tensor = layout.tensor;
  parallel.pipeline = layout.pipeline;
  parallel.finish();
  return parallel;
}

void check_layout(const ModelConfig& config, const MegatronLayout& layout) {
  Problems problems;
  const ParallelConfig parallel = parallel_config(layout);
  parallel.validate(problems);
  parallel.validate(config, problems);
  if (!problems.empty()) fail(ErrorKind::kUsage, join(problems.list(), "; "));
}

Layers layers_of(const ModelConfig& config, const MegatronLayout& layout, int pipeline) {
  const LayerRange range = StageTable(config.layers, parallel_config(layout)).range(pipeline);
  return {.first = range.first,
          .count = range.count,
          .embedding = pipeline == 0,
          .head = pipeline == layout.pipeline - 1};
}

// Transformer Engine keeps a norm's parameters in the linear layer that follows it.
std::string engine_name(std::string name) {
  for (const auto& [norm, linear] : {std::pair{"input_layernorm.", "self_attention.linear_qkv.layer_norm_"},
                                     {"pre_mlp_layernorm.", "mlp.linear_fc1.layer_norm_"}})
    if (const size_t at = name.find(norm); at != std::string::npos)
      name.replace(at, std::string_view(norm).size(), linear);
  return name;
}

// Layers are counted within the stage.
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

// The rows and columns of the whole tensor that a rank holds.
Recipe recipe_of(const Param& param, bool vector, int64_t rows_on_a_rank) {
  const ParamShare share = share_of(param);
  const int last = param.global.rank - 1;
  Recipe recipe{.source = share.box.name, .form = {share.box.global, vector}, .how = "copy"};
  const int64_t column = vector ? 0 : share.box.offset[last], columns = vector ? 1 : share.extent[last];
  if (share.extent.elements() > 0)
    for_each_row_run(recipe.form, share.box.offset, share.extent, [&](int64_t row, int64_t rows, int64_t) {
      recipe.blocks.push_back({row, rows, column, columns});
    });
  else  // beyond the true vocabulary
    recipe.blocks.push_back({recipe.form.rows(), 0, column, columns});
  recipe.repeated = rows_on_a_rank - recipe.rows();
  if (param.cut_axis != kWhole && share.extent != param.global)
    recipe.how = concat(param.cut_axis == last && !vector ? "columns " : "rows ", param.offset, " to ",
                        param.offset + param.local[param.cut_axis] - 1, " of axis ", param.cut_axis);
  if (recipe.repeated > 0) recipe.how += concat(", ", recipe.repeated, " rows of padding");
  return recipe;
}

// Megatron pads the vocabulary on one rank too.
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
    stored = &conversion.file().at(recipe.source);  // says what is there
  if (!stored) {
    recipe.source.clear();
    recipe.how = "zeros";
  }
  return {name, storage_of(stored ? conversion.dtype_of(*stored) : conversion.main_dtype()), shape, recipe};
}

// To Megatron biases of the linear layers include the one of QKV.
ModelConfig with_qkv_bias(ModelConfig config) {
  if (config.linear_bias) config.qkv_bias = true;
  return config;
}

// Parameters of a stage, those before it, and of the ranks side by side. A tied head's copy of the words
// stands beside them: a reader compares the two first of all.
size_t depth_of(const Param& param, size_t number, Place place, const MegatronLayout& layout) {
  constexpr size_t kMostParams = size_t{1} << 20;
  const size_t at = param.tie.empty() ? static_cast<size_t>(place.pipeline) * kMostParams + number : 0;
  return at * static_cast<size_t>(layout.tensor) + static_cast<size_t>(place.tensor);
}

OutputFile plan_rank(const Conversion& conversion, const MegatronLayout& layout, Place place) {
  const ModelConfig config = with_qkv_bias(conversion.source.config());
  const Layers layers = layers_of(config, layout, place.pipeline);
  ParamTable table;
  const Stage stage(config, layers, {.rank = place.tensor, .size = layout.tensor}, table);
  OutputFile file{
      .name = concat(iteration_folder(kRelease), "/", rank_folder(place, layout), "/model_optim_rng.pt")};
  for (const Param& param : table.all())
    if (param.tie.empty() || layout.pipeline > 1) {  // one stage holds a tied head's weight once
      file.tensors.push_back(
          output_of(param, rank_name(param.name, layers.first, layout), conversion, layout));
      file.tensors.back().depth = depth_of(param, file.tensors.size() - 1, place, layout);
    }
  return file;
}

Json whole_if_possible(double value) {
  const auto whole = static_cast<int64_t>(value);
  if (static_cast<double>(whole) == value) return whole;
  return value;
}

Json text_or_none(const std::string& text) {
  if (text.empty()) return {};
  return text;
}

// (left, right): the tokens that a token sees beside itself.
Json window_size(const ModelConfig& c) {
  if (c.sliding_window == 0) return {};
  return Json::Array{c.sliding_window - 1, 0};
}

// Megatron's --use-rope-scaling has LLaMA 3.1's figures built in.
void check_rope_scaling(const ModelConfig& c) {
  if (c.rope_scaling && (c.rope_low_freq != 1 || c.rope_high_freq != 4 || c.rope_original_positions != 8192))
    fail(ErrorKind::kData,
         "Megatron knows rotary scaling with low_freq_factor 1, high_freq_factor 4 and 8192 "
         "original positions only; the model has ",
         c.rope_low_freq, ", ", c.rope_high_freq, " and ", c.rope_original_positions);
}

// What Megatron compares and takes over when it loads (training/checkpointing.py: check_checkpoint_args,
// load_args_from_checkpoint).
Json::Object namespace_of(const Conversion& conversion, const MegatronLayout& layout) {
  const ModelConfig c = with_qkv_bias(conversion.source.config());
  check_rope_scaling(c);
  const Json none;
  const char* impl = layout.engine ? "transformer_engine" : "local";
  const bool rope = c.position == PositionEmbedding::kRope;
  return {{"num_layers", c.layers},
          {"encoder_num_layers", c.layers},
          {"hidden_size", c.hidden},
          {"ffn_hidden_size", c.ffn_hidden},
          {"num_attention_heads", c.heads},
          {"kv_channels", c.kv_channels},
          {"group_query_attention", c.group_query},
          {"num_query_groups", c.group_query ? c.query_groups : 1},
          {"seq_length", c.seq_length},
          {"encoder_seq_length", c.seq_length},
          {"max_position_embeddings", c.max_positions},
          {"position_embedding_type", enum_name(c.position)},
          {"add_position_embedding", c.position == PositionEmbedding::kLearned},
          {"use_rotary_position_embeddings", rope},
          {"rotary_base", whole_if_possible(c.rotary_base)},
          {"rotary_percent", c.rotary_percent},
          {"rotary_seq_len_interpolation_factor",
           c.rotary_interpolation == 1 ? none : whole_if_possible(c.rotary_interpolation)},
          {"use_rope_scaling", c.rope_scaling},
          {"rope_scaling_factor", c.rope_factor},
          {"window_size", window_size(c)},
          {"rotary_interleaved", false},
          {"normalization", enum_name(c.norm)},
          {"norm_epsilon", c.norm_epsilon},
          {"layernorm_epsilon", c.norm_epsilon},
          {"apply_layernorm_1p", false},
          {"swiglu", c.swiglu},
          {"openai_gelu", c.openai_gelu},
          {"bias_gelu_fusion", !c.swiglu && c.activation() == Activation::kGeluTanh},
          {"bias_swiglu_fusion", c.swiglu},
          {"squared_relu", false},
          {"onnx_safe", none},
          {"add_bias_linear", c.linear_bias},
          {"add_qkv_bias", c.has_qkv_bias()},
          {"qk_layernorm", false},
          {"untie_embeddings_and_output_weights", c.untied_head},
          {"attention_dropout", c.attention_dropout},
          {"hidden_dropout", c.hidden_dropout},
          {"init_method_std", c.init_std},
          {"num_experts", none},
          {"make_vocab_size_divisible_by", c.vocab_divisor},
          {"padded_vocab_size", c.padded_vocab(layout.tensor)},
          {"vocab_size", c.vocab_size},
          {"tokenizer_type", text_or_none(conversion.source.tokenizer().type)},
          {"tokenizer_model", none},
          {"vocab_file", none},
          {"merge_file", none},
          {"tensor_model_parallel_size", layout.tensor},
          {"pipeline_model_parallel_size", layout.pipeline},
          {"virtual_pipeline_model_parallel_size", none},
          {"num_layers_per_virtual_pipeline_stage", none},
          {"expert_model_parallel_size", 1},
          {"context_parallel_size", 1},
          {"world_size", layout.tensor * layout.pipeline},
          {"data_parallel_size", 1},
          {"transformer_impl", impl},
          {"use_dist_ckpt", false},
          {"ckpt_format", "torch"},
          {"fp16", conversion.main_dtype() == DType::kF16},
          {"bf16", conversion.main_dtype() == DType::kBf16},
          {"iteration", 0},
          {"consumed_train_samples", 0},
          {"consumed_valid_samples", 0},
          {"data_parallel_random_init", false}};
}

void pickle_args(PickleWriter& pickle, const Conversion& conversion, const MegatronLayout& layout) {
  pickle.global("argparse", "Namespace");
  pickle.empty_tuple();
  pickle.construct();
  pickle.begin_dict();
  for (const auto& [name, value] : namespace_of(conversion, layout)) {
    pickle.text(name);
    pickle.json(value);
  }
  pickle.text("params_dtype");
  pickle_dtype(pickle, conversion.main_dtype());
  pickle.end_dict();
  pickle.build();
}

// Transformer Engine's linear layers ask for this key; None is what one without fp8 has to say.
void pickle_extra_states(PickleWriter& pickle, int layers) {
  for (int layer = 0; layer < layers; ++layer)
    for (const char* linear :
         {"self_attention.linear_qkv", "self_attention.linear_proj", "mlp.linear_fc1", "mlp.linear_fc2"}) {
      pickle.text(concat(kLayerPrefix, layer, '.', linear, "._extra_state"));
      pickle.none();
    }
}

std::string pickle_of(const OutputFile& file, const Conversion& conversion, const MegatronLayout& layout) {
  PickleWriter pickle;
  pickle.begin_dict();
  pickle.text("args");
  pickle_args(pickle, conversion, layout);
  pickle.text("checkpoint_version");
  pickle.real(kCheckpointVersion);
  pickle.text("iteration");
  pickle.integer(0);
  pickle.text("model");
  pickle.begin_dict();
  for (size_t i = 0; i < file.tensors.size(); ++i) {
    const OutputTensor& tensor = file.tensors[i];
    pickle.text(tensor.name);
    pickle_tensor(pickle, {tensor.name, plain_type(tensor.storage), tensor.shape}, i);
  }
  if (layout.engine) pickle_extra_states(pickle, conversion.source.config().layers / layout.pipeline);
  pickle.end_dict();
  pickle.end_dict();
  return pickle.finish();
}

TorchLayout layout_of(const OutputFile& file, const std::string& pickle) {
  std::vector<uint64_t> storages;
  for (const OutputTensor& tensor : file.tensors) storages.push_back(tensor.bytes());
  return {fs::path(file.name).stem().string(), pickle, storages};
}

// All but its tensors and their sums.
PlacedFile create_torch(const OutputFile& file, const TorchLayout& layout, const std::string& path,
                        PlacedFiles& files) {
  PlacedFile placed{.number = files.create(path, layout.size()), .offsets = {}};
  files.put(placed.number, layout.parts(std::vector<uint32_t>(file.tensors.size())));
  for (size_t i = 0; i < file.tensors.size(); ++i) placed.offsets.push_back(layout.offset(i));
  return placed;
}

}  // namespace

OutputPlan plan_megatron(const Conversion& conversion, const MegatronLayout& layout) {
  check_layout(conversion.source.config(), layout);
  OutputPlan plan;
  for (const Place place : places_of(layout)) plan.push_back(plan_rank(conversion, layout, place));
  return plan;
}

void export_megatron(const Conversion& conversion, const std::string& output, const MegatronLayout& layout) {
  refuse_used(output);
  const OutputPlan plan = plan_megatron(conversion, layout);
  PlacedFiles files(memory_for(plan));
  OutputCheck check(conversion);
  AtomicDirectory folder(output);
  if (!conversion.tokenizer_folder.empty()) {
    make_directories(folder.path() / kTokenizerFolder);
    for (const auto& [name, contents] : tokenizer_files_of(conversion.tokenizer_folder))
      write_file((folder.path() / kTokenizerFolder / name).string(), contents);
  }
  write_file((folder.path() / kTrackerFile).string(), "release");
  std::vector<TorchLayout> layouts;
  std::vector<PlacedFile> placed;
  for (const OutputFile& file : plan) {
    const fs::path path = folder.path() / file.name;
    make_directories(path.parent_path());
    layouts.push_back(layout_of(file, pickle_of(file, conversion, layout)));
    placed.push_back(create_torch(file, layouts.back(), path.string(), files));
  }
  const SourceOptions options{.vocab_size = conversion.source.config().vocab_size,
                              .crc = CrcCheck::kNo,  // they come last
                              .writing = &files};
  if (check.wanted()) {
    // Opened before the sums come, which it would see come.
    const auto written = std::make_shared<const ModelSource>(folder.path().string(), options);
    check.follow(files, [written](const CheckRun& run) { return checked_side(written->view(), run); });
  }
  std::vector<std::vector<uint32_t>> sums;
  for (const OutputFile& file : plan) sums.emplace_back(file.tensors.size());
  write_tensors(conversion.file(), plan, placed, files,
                [&](size_t file, size_t tensor, std::span<const std::byte> bytes) {
                  sums[file][tensor] = crc32(sums[file][tensor], bytes.data(), bytes.size());
                });
  for (size_t i = 0; i < plan.size(); ++i) files.put(placed[i].number, layouts[i].parts(sums[i]));
  folder.sync();
  check.compare_followed(conversion.rounds());
  folder.commit();
}

}  // namespace megalith
