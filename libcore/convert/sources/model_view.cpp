#include "libcore/convert/sources/model_view.h"

#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

// Extents of the layers, which do not depend on the file's format.
struct Sizes {
  explicit Sizes(const ModelConfig& c)
      : hidden(c.hidden),
        query(int64_t{c.heads} * c.kv_channels),
        key(int64_t{c.kv_heads()} * c.kv_channels),
        ffn(c.ffn_hidden) {}
  int64_t hidden, query, key, ffn;
};

// Finds tensors of a file. An optional tensor that the file does not have gets an empty name.
class Finder {
 public:
  explicit Finder(const TensorFile& file) : file_(file) {}

  bool has(const std::string& stem) const { return file_.find(stem + ".weight") != nullptr; }
  std::string optional(const std::string& name) const { return file_.find(name) ? name : std::string(); }
  std::array<std::string, 2> norm(const std::string& stem) const {
    return {file_.at(stem + ".weight").name, optional(stem + ".bias")};
  }
  // The norm of a model that has it.
  std::array<std::string, 2> norm_if(bool has, const std::string& stem) const {
    return has ? norm(stem) : std::array<std::string, 2>{};
  }
  // A layer whose stored rows, in their order, are the rows of its result from row `at` on.
  Product straight(const std::string& stem, int64_t at, bool transposed = false) const {
    const StoredTensor& weight = file_.at(stem + ".weight");
    const Shape shape = weight.shape();
    const int64_t rows = transposed ? shape.back() : shape.rows();
    return {weight.name, optional(stem + ".bias"), shape, transposed, {{0, at, rows}}};
  }

 private:
  const TensorFile& file_;
};

// The rows of our packed QKV, [groups, heads of a group + 2, head, hidden], which holds for each group its
// queries, its key, its value.
std::vector<RowRun> packed_rows(const ModelConfig& c) {
  const Sizes sizes(c);
  const int64_t groups = c.kv_heads(), head = c.kv_channels, queries = c.heads / groups * head;
  std::vector<RowRun> runs;
  for (int64_t group = 0; group < groups; ++group) {
    const int64_t at = group * (queries + 2 * head);
    runs.push_back({at, group * queries, queries});
    runs.push_back({at + queries, sizes.query + group * head, head});
    runs.push_back({at + queries + head, sizes.query + sizes.key + group * head, head});
  }
  return runs;
}

ModelView gpt2_view(const TensorFile& file, const ModelConfig& config) {
  const Finder find(file);
  const bool bare = !file.find("transformer.wte.weight");
  const std::string top = bare ? "" : "transformer.";
  ModelView view{
      .file = &file, .config = config, .words = top + "wte.weight", .positions = top + "wpe.weight"};
  for (int layer = 0; layer < config.layers; ++layer) {
    const std::string stem = concat(top, "h.", layer, '.');
    view.layers.push_back({.norm1 = find.norm(stem + "ln_1"),
                           .norm2 = find.norm(stem + "ln_2"),
                           .qkv = {find.straight(stem + "attn.c_attn", 0, true)},
                           .proj = {find.straight(stem + "attn.c_proj", 0, true)},
                           .fc1 = {find.straight(stem + "mlp.c_fc", 0, true)},
                           .fc2 = {find.straight(stem + "mlp.c_proj", 0, true)}});
  }
  view.final_norm = find.norm(top + "ln_f");
  view.head = config.untied_head ? "lm_head.weight" : view.words;
  return view;
}

// The layers of a model with LLaMA's names, in parts as LLaMA has them or joined, as a file has them.
std::vector<Product> qkv_like_llama(const Finder& find, const std::string& stem, const Sizes& sizes) {
  if (find.has(stem + "qkv_proj")) return {find.straight(stem + "qkv_proj", 0)};
  return {find.straight(stem + "q_proj", 0), find.straight(stem + "k_proj", sizes.query),
          find.straight(stem + "v_proj", sizes.query + sizes.key)};
}
std::vector<Product> fc1_like_llama(const Finder& find, const std::string& stem, const Sizes& sizes) {
  for (const char* joined : {"gate_up_proj", "c_fc"})
    if (find.has(stem + joined)) return {find.straight(stem + joined, 0)};
  return {find.straight(stem + "gate_proj", 0), find.straight(stem + "up_proj", sizes.ffn)};
}

ModelView falcon_view(const TensorFile& file, const ModelConfig& config) {
  const Finder find(file);
  const std::string top = find.has("transformer.word_embeddings") ? "transformer." : "";
  ModelView view{.file = &file, .config = config, .words = top + "word_embeddings.weight"};
  for (int layer = 0; layer < config.layers; ++layer) {
    const std::string stem = concat(top, "h.", layer, '.');
    const bool two = find.has(stem + "ln_mlp");
    Product qkv = find.straight(stem + "self_attention.query_key_value", 0);
    qkv.runs = packed_rows(config);  // queries, key and value of each group lie together
    view.layers.push_back({.norm1 = find.norm(stem + (two ? "ln_attn" : "input_layernorm")),
                           .norm2 = find.norm_if(two, stem + "ln_mlp"),
                           .qkv = {std::move(qkv)},
                           .proj = {find.straight(stem + "self_attention.dense", 0)},
                           .fc1 = {find.straight(stem + "mlp.dense_h_to_4h", 0)},
                           .fc2 = {find.straight(stem + "mlp.dense_4h_to_h", 0)}});
  }
  view.final_norm = find.norm(top + "ln_f");
  view.head = config.untied_head ? "lm_head.weight" : view.words;
  return view;
}

ModelView gpt_neox_view(const TensorFile& file, const ModelConfig& config) {
  const Finder find(file);
  const std::string top = find.has("gpt_neox.embed_in") ? "gpt_neox." : "";
  ModelView view{.file = &file, .config = config, .words = top + "embed_in.weight"};
  for (int layer = 0; layer < config.layers; ++layer) {
    const std::string stem = concat(top, "layers.", layer, '.');
    Product qkv = find.straight(stem + "attention.query_key_value", 0);
    qkv.runs = packed_rows(config);  // query, key and value of each head lie together
    view.layers.push_back({.norm1 = find.norm(stem + "input_layernorm"),
                           .norm2 = find.norm(stem + "post_attention_layernorm"),
                           .qkv = {std::move(qkv)},
                           .proj = {find.straight(stem + "attention.dense", 0)},
                           .fc1 = {find.straight(stem + "mlp.dense_h_to_4h", 0)},
                           .fc2 = {find.straight(stem + "mlp.dense_4h_to_h", 0)}});
  }
  view.final_norm = find.norm(top + "final_layer_norm");
  view.head = config.untied_head ? "embed_out.weight" : view.words;
  return view;
}

// The view of LLaMA and of models with most of its tensor names.
ModelView llama_view(const TensorFile& file, const ModelConfig& config) {
  const Finder find(file);
  const Sizes sizes(config);
  ModelView view{.file = &file, .config = config, .words = "model.embed_tokens.weight"};
  for (int layer = 0; layer < config.layers; ++layer) {
    const std::string stem = concat("model.layers.", layer, '.');
    const bool before = config.norms_before(), after = config.norms_after();
    // Where branches have a norm at their end, that is "post_attention".
    const char* const second = after ? "pre_feedforward_layernorm" : "post_attention_layernorm";
    view.layers.push_back(
        {.norm1 = find.norm_if(before, stem + "input_layernorm"),
         .norm2 = find.norm_if(before, stem + second),
         .qkv = qkv_like_llama(find, stem + "self_attn.", sizes),
         .proj = {find.straight(stem + "self_attn.o_proj", 0)},
         .fc1 = fc1_like_llama(find, stem + "mlp.", sizes),
         .fc2 = {find.straight(find.has(stem + "mlp.c_proj") ? stem + "mlp.c_proj" : stem + "mlp.down_proj",
                               0)},
         .query_norm = find.norm_if(config.qk_layernorm, stem + "self_attn.q_norm"),
         .key_norm = find.norm_if(config.qk_layernorm, stem + "self_attn.k_norm"),
         .after1 = find.norm_if(after, stem + "post_attention_layernorm"),
         .after2 = find.norm_if(after, stem + "post_feedforward_layernorm")});
  }
  view.final_norm = find.norm("model.norm");
  view.head = config.untied_head ? "lm_head.weight" : view.words;
  return view;
}

std::vector<Product> gguf_qkv(const Finder& find, const std::string& stem, const Sizes& sizes, bool joined) {
  if (joined) return {find.straight(stem + "attn_qkv", 0)};
  return {find.straight(stem + "attn_q", 0), find.straight(stem + "attn_k", sizes.query),
          find.straight(stem + "attn_v", sizes.query + sizes.key)};
}

}  // namespace

ModelView our_view(const TensorFile& file, const ModelConfig& config) {
  const Finder find(file);
  ModelView view{.file = &file, .config = config, .words = "embedding.word_embeddings.weight"};
  if (config.position == PositionEmbedding::kLearned) view.positions = "embedding.position_embeddings.weight";
  for (int layer = 0; layer < config.layers; ++layer) {
    const std::string stem = concat("decoder.layers.", layer, '.');
    Product qkv = find.straight(stem + "self_attention.linear_qkv", 0);
    qkv.runs = packed_rows(config);
    view.layers.push_back(
        {.norm1 = find.norm_if(config.norms_before(), stem + "input_layernorm"),
         .norm2 = find.norm_if(config.has_second_norm(), stem + "pre_mlp_layernorm"),
         .qkv = {std::move(qkv)},
         .proj = {find.straight(stem + "self_attention.linear_proj", 0)},
         .fc1 = {find.straight(stem + "mlp.linear_fc1", 0)},
         .fc2 = {find.straight(stem + "mlp.linear_fc2", 0)},
         .query_norm = find.norm_if(config.qk_layernorm, stem + "self_attention.q_layernorm"),
         .key_norm = find.norm_if(config.qk_layernorm, stem + "self_attention.k_layernorm"),
         .after1 = find.norm_if(config.norms_after(), stem + "post_self_attn_layernorm"),
         .after2 = find.norm_if(config.norms_after(), stem + "post_mlp_layernorm")});
  }
  view.final_norm = find.norm("decoder.final_layernorm");
  view.head = config.untied_head ? "output_layer.weight" : view.words;
  return view;
}

ModelView hugging_face_view(const TensorFile& file, const ModelConfig& config) {
  if (config.position == PositionEmbedding::kLearned) return gpt2_view(file, config);
  const auto has = [&](const std::string& prefix, const std::string& name) {
    return file.find(prefix + name) || file.find(name);
  };
  if (has("gpt_neox.", "embed_in.weight")) return gpt_neox_view(file, config);
  return has("transformer.", "word_embeddings.weight") ? falcon_view(file, config) : llama_view(file, config);
}

ModelView gguf_view(const GgufFile& file, const ModelConfig& config) {
  const Finder find(file);
  const std::string& arch = file.metadata()["general.architecture"].as_string();
  const bool gpt2 = arch == "gpt2";
  const Sizes sizes(config);
  ModelView view{.file = &file,
                 .config = config,
                 .neighbours = arch == "llama" || arch == "granite",
                 .words = "token_embd.weight"};
  if (gpt2) view.positions = "position_embd.weight";
  for (int layer = 0; layer < config.layers; ++layer) {
    const std::string stem = concat("blk.", layer, '.');
    std::vector<Product> fc1;
    if (!gpt2) fc1.push_back(find.straight(stem + "ffn_gate", 0));
    fc1.push_back(find.straight(stem + "ffn_up", gpt2 ? 0 : sizes.ffn));
    view.layers.push_back({.norm1 = find.norm_if(config.norms_before(), stem + "attn_norm"),
                           .norm2 = find.norm_if(config.norms_before(), stem + "ffn_norm"),
                           .qkv = gguf_qkv(find, stem, sizes, gpt2),
                           .proj = {find.straight(stem + "attn_output", 0)},
                           .fc1 = std::move(fc1),
                           .fc2 = {find.straight(stem + "ffn_down", 0)},
                           .query_norm = find.norm_if(config.qk_layernorm, stem + "attn_q_norm"),
                           .key_norm = find.norm_if(config.qk_layernorm, stem + "attn_k_norm"),
                           .after1 = find.norm_if(config.norms_after(), stem + "post_attention_norm"),
                           .after2 = find.norm_if(config.norms_after(), stem + "post_ffw_norm")});
  }
  view.final_norm = find.norm("output_norm");
  view.head = config.untied_head ? "output.weight" : view.words;
  return view;
}

}  // namespace megalith
