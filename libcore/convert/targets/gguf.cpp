#include "libcore/convert/targets/gguf.h"

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/gguf/gguf.h"
#include "libcore/config/activations.h"
#include "libcore/convert/output/output_check.h"
#include "libcore/convert/sources/hf_config.h"
#include "libcore/convert/targets/gguf_tokenizer.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

// llama.cpp's names for our tensors. One of our tensors may have several parts there, in the order of the
// family's NameRow::theirs.
struct GgufName {
  std::string_view ours;  // our name without ".weight" or ".bias"; '#' stands for the layer
  std::array<const char*, 3> joined, apart;  // for GgufForm::joined, and for other families
};
constexpr GgufName kNames[] = {
    {"embedding.word_embeddings", {"token_embd"}, {"token_embd"}},
    {"embedding.position_embeddings", {"position_embd"}, {}},
    {"decoder.layers.#.input_layernorm", {"blk.#.attn_norm"}, {"blk.#.attn_norm"}},
    {"decoder.layers.#.self_attention.linear_qkv",
     {"blk.#.attn_qkv"},
     {"blk.#.attn_q", "blk.#.attn_k", "blk.#.attn_v"}},
    {"decoder.layers.#.self_attention.q_layernorm", {}, {"blk.#.attn_q_norm"}},
    {"decoder.layers.#.self_attention.k_layernorm", {}, {"blk.#.attn_k_norm"}},
    {"decoder.layers.#.self_attention.linear_proj", {"blk.#.attn_output"}, {"blk.#.attn_output"}},
    {"decoder.layers.#.post_self_attn_layernorm", {}, {"blk.#.post_attention_norm"}},
    {"decoder.layers.#.post_mlp_layernorm", {}, {"blk.#.post_ffw_norm"}},
    {"decoder.layers.#.pre_mlp_layernorm", {"blk.#.ffn_norm"}, {"blk.#.ffn_norm"}},
    {"decoder.layers.#.mlp.linear_fc1", {"blk.#.ffn_up"}, {"blk.#.ffn_gate", "blk.#.ffn_up"}},
    {"decoder.layers.#.mlp.linear_fc2", {"blk.#.ffn_down"}, {"blk.#.ffn_down"}},
    {"decoder.final_layernorm", {"output_norm"}, {"output_norm"}},
    {"output_layer", {"output"}, {"output"}},
};

const Family& family_for(const ModelConfig& config) {
  const Family& family = family_of(config);
  if (config.rope_scaling || config.rotary_interpolation != 1 || config.rope_type != RopeType::kDefault ||
      config.sliding_window > 0)
    fail(ErrorKind::kData,
         "a model with rotary scaling or a sliding window cannot be written for "
         "llama.cpp; write --to hf and use llama.cpp's own converter");
  if (family.gguf.architecture) return family;
  fail(ErrorKind::kData, "a ", family.names.architecture,
       " cannot be written for llama.cpp; write another format, such as --to hf");
}

std::string gguf_name(const Family& family, const RenamedTensor& renamed, size_t part) {
  const std::string_view row = renamed.row->ours;
  const size_t dot = row.rfind('.');
  for (const GgufName& name : kNames)
    if (name.ours == row.substr(0, dot))
      return with_layer((family.gguf.joined ? name.joined : name.apart)[part], renamed.layer) +
             std::string(row.substr(dot));
  fail(ErrorKind::kInternal, "no name in GGUF for ", quote(renamed.ours));
}

bool is_positions(const RenamedTensor& renamed) {
  return renamed.ours.starts_with("embedding.position_embeddings");
}

OutputTensor output_of(const Family& family, const RenamedTensor& renamed, size_t part,
                       const Conversion& conversion, std::optional<Storage> type) {
  Recipe recipe = part_recipe(renamed, part);
  const bool matrix = recipe.columns() > 1;
  recipe.transposed = false;  // matrices are [out, in], as in Megatron
  const bool rotated = renamed.row->transform == Transform::kSplitQkv && part < 2;
  if (family.gguf.neighbours && rotated) {
    recipe.head = conversion.source.config().kv_channels;
    recipe.how += ", halves of heads interleaved";
  } else if (matrix && renamed.row->transform == Transform::kTranspose) {
    recipe.how = "copy";
  } else if (matrix && renamed.row->transform == Transform::kJoinQkv) {
    recipe.how = "q | k | v";
  }
  Storage storage = Storage::kF32;
  if (matrix && !is_positions(renamed))
    storage = type.value_or(renamed.absent ? storage_of(conversion.main_dtype())
                                           : storage_of(*conversion.file().at(renamed.ours).dtype));
  if (storage == Storage::kQ8 && recipe.columns() % kQ8Block != 0)  // llama.cpp has this rule, too
    storage = Storage::kF16;
  const Shape shape = matrix ? Shape{recipe.rows(), recipe.columns()} : Shape{recipe.rows()};
  return {gguf_name(family, renamed, part), storage, shape, std::move(recipe)};
}

GgufType gguf_type(Storage storage) {
  switch (storage) {
    case Storage::kF32:
      return GgufType::kF32;
    case Storage::kBf16:
      return GgufType::kBf16;
    case Storage::kF16:
      return GgufType::kF16;
    case Storage::kQ8:
      return GgufType::kQ8;
  }
  return GgufType::kF32;
}

// llama.cpp's number for a file whose tensors are mostly of this type.
int64_t file_type(Storage storage) {
  switch (storage) {
    case Storage::kF32:
      return 0;
    case Storage::kF16:
      return 1;
    case Storage::kQ8:
      return 7;
    case Storage::kBf16:
      return 32;
  }
  return 0;
}

void add_model(GgufMetadata& metadata, const Family& family, const ModelConfig& c) {
  const auto key = [&](const char* name) { return std::string(family.gguf.architecture) + "." + name; };
  metadata.u32(key("context_length"), c.max_positions);
  metadata.u32(key("embedding_length"), c.hidden);
  metadata.u32(key("block_count"), c.layers);
  metadata.u32(key("feed_forward_length"), c.ffn_hidden);
  metadata.u32(key("attention.head_count"), c.heads);
  if (family.gguf.joined) return metadata.f32(key("attention.layer_norm_epsilon"), c.norm_epsilon);
  metadata.u32(key("attention.head_count_kv"), c.kv_heads());
  metadata.f32(key("attention.layer_norm_rms_epsilon"), c.norm_epsilon);
  metadata.u32(key("attention.key_length"), c.kv_channels);
  metadata.u32(key("attention.value_length"), c.kv_channels);
  metadata.f32(key("rope.freq_base"), c.rotary_base);
  metadata.u32(key("rope.dimension_count"), c.kv_channels);
  metadata.u32(key("vocab_size"), c.vocab_size);
  if (!family.multipliers) return;
  metadata.f32(key("embedding_scale"), c.embedding_multiplier);
  metadata.f32(key("residual_scale"), c.residual_multiplier);
  metadata.f32(key("attention.scale"), c.attention_scale());
  metadata.f32(key("logit_scale"), c.logits_scaling);
}

std::string title_of_file(const fs::path& file) {
  const std::string stem = file.stem().string();
  return stem == "model" ? title_of(fs::absolute(file).parent_path().string()) : stem;
}

GgufMetadata metadata_of(const Conversion& conversion, const Family& family, const fs::path& file,
                         Storage storage) {
  GgufMetadata metadata;
  const ModelConfig& config = conversion.source.config();
  metadata.text("general.architecture", family.gguf.architecture);
  metadata.text("general.type", "model");
  metadata.text("general.name", title_of_file(file));
  metadata.u32("general.file_type", file_type(storage));
  if (storage == Storage::kQ8) metadata.u32("general.quantization_version", 2);
  add_model(metadata, family, config);
  if (conversion.tokenizer_folder.empty()) {
    warn("the model has no tokenizer; llama.cpp will take and return token ids only");
    metadata.text("tokenizer.ggml.model", "no_vocab");
  } else {
    add_gguf_tokenizer(metadata,
                       hf_tokenizer_files(conversion.tokenizer_folder, config, conversion.end_token()),
                       conversion.tokenizer_folder, config.vocab_size);
  }
  return metadata;
}

/// llama.cpp's GPT-2 graph has one activation, the tanh form of GELU. The exact form differs from it by less
/// than 0.001, so a model with that is written, too.
void check_activation(const ModelConfig& config) {
  const ActivationFunction function = config.activation();
  if (config.swiglu || function == ActivationFunction::kGeluTanh || function == ActivationFunction::kGelu)
    return;
  fail(ErrorKind::kData, "llama.cpp computes GELU in the feed-forward block of GPT-2, but the model has ",
       hf_name(function), "; write another format, such as --to hf");
}

}  // namespace

fs::path gguf_path(const std::string& output) {
  if (output.ends_with(".gguf")) return output;
  return fs::path(output) / "model.gguf";
}

OutputPlan plan_gguf(const Conversion& conversion, std::optional<Storage> type) {
  const ModelConfig& config = conversion.source.config();
  const Family& family = family_for(config);
  OutputFile file{.name = "model.gguf"};
  for (const RenamedTensor& renamed : renamed_tensors(family.names, config))
    for (size_t part = 0; part < renamed.theirs.size(); ++part)
      file.tensors.push_back(output_of(family, renamed, part, conversion, type));
  return {std::move(file)};
}

void export_gguf(const Conversion& conversion, const std::string& output, std::optional<Storage> type) {
  const fs::path path = gguf_path(output);
  const ModelConfig& config = conversion.source.config();
  check_activation(config);
  if (config.activation() == ActivationFunction::kGelu)
    warn(
        "llama.cpp computes GELU with tanh, but the model was trained with the exact form: logits "
        "differ by "
        "about 0.001");
  const OutputPlan plan = plan_gguf(conversion, type);
  const GgufMetadata metadata =
      metadata_of(conversion, family_for(config), path, type.value_or(storage_of(conversion.source.dtype())));
  if (!path.parent_path().empty()) make_directories(path.parent_path());
  std::vector<GgufTensor> tensors;
  for (const OutputTensor& t : plan.front().tensors)
    tensors.push_back({t.name, gguf_type(t.storage), t.shape});
  const GgufLayout layout(metadata, tensors);
  OutputCheck check(conversion);
  AtomicFile file(path.string());
  PlacedFiles files(memory_for(plan));
  const PlacedFile placed{.number = files.fill(file, layout.size), .offsets = layout.offsets};
  files.put(placed.number, {{0, layout.head}});
  write_tensors(conversion.file(), plan, {placed}, files);
  if (check.wanted()) {
    const GgufFile written(file.open_path());
    const bool rounded = type && *type != Storage::kF32 && *type != storage_of(conversion.source.dtype());
    check.compare(gguf_view(written, config), rounded);
  }
  file.commit();
}

}  // namespace megalith
