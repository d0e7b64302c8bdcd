#include "libcore/convert/megatron_source.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/checkpoint_format.h"
#include "libcore/checkpoint/joined_file.h"
#include "libcore/checkpoint/megatron_names.h"
#include "libcore/checkpoint/name_map.h"
#include "libcore/convert/hf_config.h"
#include "libcore/convert/megatron_args.h"
#include "libcore/convert/tokenizer_folder.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using Kind = PickleValue::Kind;
constexpr const char* kEmbedding = "embedding.word_embeddings.weight";
constexpr const char* kPositions = "embedding.position_embeddings.weight";
constexpr const char* kHead = "output_layer.weight";
constexpr size_t kMostNamed = 5;  // names in one complaint

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  fail(ErrorKind::kData, where, ": ", what);
}

std::string some_of(const std::set<std::string>& names) {
  std::vector<std::string> shown;
  for (const std::string& name : names)
    if (shown.size() < kMostNamed) shown.push_back(quote(name));
  return join(shown, ", ") + (names.size() > shown.size() ? ", …" : "");
}

// The files of a checkpoint, one a rank.
struct RankFile {
  int tensor = 0, pipeline = 0;
  std::string path;
};
struct Grid {
  std::string path;  // that names the checkpoint
  std::vector<RankFile> files = {};
  int tensor = 1, pipeline = 1;  // sizes
};

// "mp_rank_TT" or "mp_rank_TT_PPP" or, with experts, one more "_EEE".
std::optional<std::vector<int>> rank_numbers(const std::string& folder) {
  constexpr std::string_view kPrefix = "mp_rank_";
  if (!folder.starts_with(kPrefix)) return {};
  std::vector<int> numbers;
  for (const std::string& part : split(std::string_view(folder).substr(kPrefix.size()), '_')) {
    const auto number = parse_int(part);
    if (!number || *number < 0 || *number > 99999) return {};
    numbers.push_back(static_cast<int>(*number));
  }
  return numbers;
}

std::string rank_file(const std::string& folder) {
  for (const char* name : {"model_optim_rng.pt", "model_rng.pt"})
    if (file_exists(folder + "/" + name)) return folder + "/" + name;
  fail(ErrorKind::kNoInput, folder, ": holds neither model_optim_rng.pt nor model_rng.pt");
}

// All mp_rank folders below the folder of an iteration.
Grid grid_of(const std::string& folder) {
  Grid grid{.path = folder};
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const auto numbers = rank_numbers(name);
    if (!numbers) continue;
    if (numbers->size() > 2) refuse(folder, concat(name, " is a rank of experts, which are not supported"));
    const int tensor = (*numbers)[0], pipeline = numbers->size() > 1 ? (*numbers)[1] : 0;
    grid.files.push_back({tensor, pipeline, rank_file(entry.path().string())});
    grid.tensor = std::max(grid.tensor, tensor + 1);
    grid.pipeline = std::max(grid.pipeline, pipeline + 1);
  }
  std::sort(grid.files.begin(), grid.files.end(), [](const RankFile& a, const RankFile& b) {
    return std::pair(a.pipeline, a.tensor) < std::pair(b.pipeline, b.tensor);
  });
  const auto wanted = static_cast<size_t>(grid.tensor) * static_cast<size_t>(grid.pipeline);
  if (grid.files.size() != wanted)
    refuse(folder, concat("holds ", grid.files.size(), " mp_rank folders, but ", grid.tensor,
                          " tensor-parallel times ", grid.pipeline, " pipeline ranks are ", wanted));
  return grid;
}

bool is_rank_folder(const fs::path& folder) {
  return rank_numbers(folder.filename().string()).has_value();
}

Grid locate(const std::string& path) {
  const fs::path absolute = fs::absolute(path).lexically_normal();
  const fs::path given = absolute.has_filename() ? absolute : absolute.parent_path();
  if (fs::is_directory(given) && !is_rank_folder(given) &&
      !file_exists((given / "model_optim_rng.pt").string()))
    return grid_of(path);
  // One rank's file or folder: with its sisters, when it stands among them.
  const fs::path folder = fs::is_directory(given) ? given : given.parent_path();
  if (is_rank_folder(folder)) {
    Grid grid = grid_of(folder.parent_path().string());
    if (grid.files.size() > 1) return grid;
  }
  return {.path = path, .files = {{0, 0, fs::is_directory(given) ? rank_file(path) : path}}};
}

// A stage's share of a model, of one tensor-parallel rank. Virtual pipelines have several chunks in a file.
struct Share {
  int tensor, pipeline, chunk;
  std::string path;
  std::map<std::string, TorchTensor> tensors = {};  // by our name with '#', or with the file's layer number
  int layers = 0;
};
struct Contents {
  Json args = Json::object();
  std::optional<double> version = {};
  int64_t iteration = kRelease;
  bool mcore = false;
  std::vector<Share> shares = {};
  std::set<std::string> unknown = {};  // keys that have no place here
};

std::string with_layer(std::string name, int layer) {
  if (const size_t at = name.find('#'); at != std::string::npos) name.replace(at, 1, std::to_string(layer));
  return name;
}

void add_leaf(Contents& contents, Share& share, const TorchFile& file, const TorchLeaf& leaf) {
  if (is_skipped(leaf.name)) return;
  const auto name = our_name(leaf.name);
  if (!name || file.tree[leaf.value].kind != Kind::kTensor) {
    contents.unknown.insert(leaf.name);
    return;
  }
  contents.mcore = contents.mcore || leaf.name.find("linear_qkv") != std::string::npos;
  share.layers = std::max(share.layers, name->layer + 1);
  if (!share.tensors.emplace(with_layer(name->ours, name->layer), file.tensor(leaf.value)).second)
    refuse(share.path, concat("key ", quote(leaf.name), " and another one are the same parameter"));
}

// Keys "model", or "model0", "model1", … with a virtual pipeline.
std::vector<PickleRef> chunks_of(const TorchFile& file) {
  const PickleTree& tree = file.tree;
  if (const auto model = tree.find_ref(tree.root(), "model")) return {*model};
  std::vector<PickleRef> chunks;
  while (const auto chunk = tree.find_ref(tree.root(), concat("model", chunks.size())))
    chunks.push_back(*chunk);
  if (!chunks.empty()) return chunks;
  std::set<std::string> keys;
  const auto& members = tree.members(tree.root());
  for (size_t i = 0; i < members.size(); i += 2)
    if (tree[members[i]].kind == Kind::kText) keys.insert(std::string(tree[members[i]].text()));
  refuse(file.path(), concat("holds no \"model\", so it is no checkpoint of Megatron-LM; it holds ",
                             keys.empty() ? "nothing" : some_of(keys)));
}

std::optional<double> number_of(const PickleTree& tree, const char* key) {
  const PickleValue* value = tree.find(tree.root(), key);
  if (value && value->kind == Kind::kInt) return static_cast<double>(value->whole());
  if (value && value->kind == Kind::kFloat) return value->real();
  return {};
}

void read_common(Contents& contents, const PickleTree& tree) {
  if (const auto args = tree.find_ref(tree.root(), "args")) contents.args = args_json(tree, *args);
  contents.version = number_of(tree, "checkpoint_version");
  const auto iteration = number_of(tree, "iteration");
  if (iteration && *iteration >= 0 && *iteration < 9e15)
    contents.iteration = static_cast<int64_t>(*iteration);
}

void check_sizes(const Json& args, const Grid& grid) {
  const auto check = [&](const char* key, int found, const char* what) {
    const Json* said = args.find(key);
    if (said && said->is_int() && said->as_int() != found)
      refuse(grid.path, concat("its args say ", key, ' ', said->as_int(), ", but ", found, ' ', what,
                               found == 1 ? " rank is" : " ranks are",
                               " there; give the folder of the iteration with all its mp_rank folders"));
  };
  check("tensor_model_parallel_size", grid.tensor, "tensor-parallel");
  check("pipeline_model_parallel_size", grid.pipeline, "pipeline");
}

Contents read_ranks(const Grid& grid, CrcCheck crc) {
  Contents contents;
  for (const RankFile& rank : grid.files) {
    const TorchFile file = open_torch(rank.path, crc);
    if (&rank == &grid.files.front()) {
      read_common(contents, file.tree);
      check_sizes(contents.args, grid);
    }
    int chunk = 0;
    for (const PickleRef model : chunks_of(file)) {
      Share share{rank.tensor, rank.pipeline, chunk++, rank.path};
      for (const TorchLeaf& leaf : leaves_of(file.tree, model, rank.path))
        add_leaf(contents, share, file, leaf);
      contents.shares.push_back(std::move(share));
    }
  }
  if (!contents.unknown.empty())
    refuse(grid.path, concat(contents.unknown.size(),
                             " keys have no place in a model here: ", some_of(contents.unknown)));
  return contents;
}

// The tensors of one parameter by tensor-parallel rank; more than one set when stages hold copies.
struct Held {
  std::string path;
  TorchTensor tensor;
};
using HeldByName = std::map<std::string, std::vector<std::vector<Held>>>;

// A stage's layer 0 is the model's layer `base`. Chunk c of all stages comes before chunk c + 1.
HeldByName with_global_layers(std::vector<Share> shares, const Grid& grid, int& layers) {
  std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) {
    return std::tuple(a.chunk, a.pipeline, a.tensor) < std::tuple(b.chunk, b.pipeline, b.tensor);
  });
  HeldByName held;
  int base = 0;
  const auto tensor_size = static_cast<size_t>(grid.tensor);
  for (size_t i = 0; i < shares.size(); i += tensor_size) {
    std::map<std::string, std::vector<Held>> stage;
    for (size_t t = i; t < i + tensor_size && t < shares.size(); ++t) {
      if (shares[t].layers != shares[i].layers)
        refuse(shares[t].path, concat("holds ", shares[t].layers, " layers, but ", shares[i].path, " holds ",
                                      shares[i].layers));
      for (auto& [name, tensor] : shares[t].tensors) stage[name].push_back({shares[t].path, tensor});
    }
    for (auto& [name, tensors] : stage) {
      if (tensors.size() != tensor_size)
        refuse(grid.path, concat("only ", tensors.size(), " of ", tensor_size, " tensor-parallel ranks hold ",
                                 quote(name), " (as ", tensors.front().path, " does)"));
      const auto found = our_name(name);
      held[found && found->layer >= 0 ? with_layer(found->ours, base + found->layer) : name].push_back(
          std::move(tensors));
    }
    base += shares[i].layers;
  }
  layers = base;
  return held;
}

// What tensors alone say, for releases that were saved without args: GPT-2's shape.
ModelConfig config_of_shapes(const HeldByName& held, int layers, const Grid& grid,
                             const SourceOptions& options) {
  const auto extents = [&](const std::string& name) -> const std::vector<int64_t>& {
    const auto it = held.find(name);
    if (it == held.end() || it->second[0][0].tensor.extents.size() != 2)
      refuse(grid.path,
             concat("has no args, and no matrix ", quote(name), " that would tell the model's size"));
    return it->second[0][0].tensor.extents;
  };
  if (options.heads == 0)
    refuse(grid.path,
           "has no args, and tensors do not tell the number of attention heads; give --num-attention-heads");
  ModelConfig c;
  c.layers = layers;
  c.hidden = static_cast<int>(extents(kEmbedding)[1]);
  c.max_positions = c.seq_length = static_cast<int>(extents(kPositions)[0]);
  c.ffn_hidden = static_cast<int>(extents("decoder.layers.0.mlp.linear_fc1.weight")[0] *
                                  static_cast<int64_t>(grid.tensor));
  c.heads = options.heads;
  if (c.hidden % c.heads != 0)
    refuse(grid.path,
           concat("--num-attention-heads ", c.heads, " does not divide the model's width ", c.hidden));
  return c;
}

QkvOrder qkv_order(const Contents& contents, const ModelConfig& config, const std::string& where) {
  const double version = contents.version.value_or(contents.mcore ? 3 : 0);
  if (version == 2 || version == 3) return QkvOrder::kByGroup;
  if (version != 0 && version != 1)
    refuse(where, concat("is of checkpoint_version ", format_double(version), "; 0 to 3 can be read"));
  if (config.group_query)
    refuse(where, concat("is of checkpoint_version ", format_double(version),
                         ", which knows no --group-query-attention"));
  return version == 0 ? QkvOrder::kByKind : QkvOrder::kByElement;
}

// Makes our tensors from those of the ranks.
class Joiner {
 public:
  Joiner(const ModelConfig& config, QkvOrder order, bool interleaved)
      : config_(config), order_(order), interleaved_(interleaved) {}

  // Appends the parts of `ranks`, one tensor a rank, to `parts` (or to `copies` where every rank has it all).
  void join(JoinedTensor& tensor, const std::vector<Held>& ranks, std::vector<JoinedPart>& parts) const {
    const TensorCut cut = cut_of(tensor.name, config_.swiglu);
    int64_t at = 0;
    for (const Held& rank : ranks) {
      const JoinedPart whole = whole_of(rank.tensor);
      switch (cut) {
        case TensorCut::kWhole:
          (at == 0 ? parts : tensor.copies).push_back(whole);
          at = 1;
          break;
        case TensorCut::kRows:
          parts.push_back(whole);
          parts.back().row = std::exchange(at, at + whole.rows);
          break;
        case TensorCut::kQkv:
          parts.push_back(whole);
          parts.back().row = std::exchange(at, at + whole.rows);
          parts.back().order = row_order(rank, whole.rows);
          break;
        case TensorCut::kColumns:
          parts.push_back(whole);
          parts.back().column = std::exchange(at, at + whole.columns);
          break;
        case TensorCut::kGateUp:
          append_halves(parts, whole, tensor.rows() / 2, at);
          at += whole.rows / 2;
          break;
      }
    }
  }

 private:
  static JoinedPart whole_of(const TorchTensor& tensor) {
    JoinedPart part{.from = tensor};
    part.rows = tensor.extents.empty() ? 1 : tensor.extents[0];
    part.columns = tensor.extents.size() < 2 ? 1 : tensor.extents[1];
    return part;
  }
  static void append_halves(std::vector<JoinedPart>& parts, const JoinedPart& whole, int64_t ups,
                            int64_t at) {
    const int64_t half = whole.rows / 2;
    for (const int64_t which : {0, 1}) {
      parts.push_back(whole);
      parts.back().from_row = which * half;
      parts.back().rows = half;
      parts.back().row = which * ups + at;
    }
  }
  RowOrder row_order(const Held& rank, int64_t rows) const {
    const int64_t group_heads = config_.heads / config_.kv_heads() + 2;
    if (rows % (group_heads * config_.kv_channels) != 0)
      refuse(rank.path,
             concat("its share of the fused QKV has ", rows, " rows, which are no whole groups of ",
                    group_heads, " heads of ", config_.kv_channels,
                    "; more tensor-parallel ranks than key/value groups are not supported"));
    if (order_ == QkvOrder::kByGroup && !interleaved_) return {};
    return {.qkv = order_,
            .head = config_.kv_channels,
            .heads = rows / (3 * config_.kv_channels),
            .group_heads = group_heads,
            .interleaved = interleaved_};
  }

  const ModelConfig& config_;
  QkvOrder order_;
  bool interleaved_;
};

bool args_flag(const Json& args, const char* key) {
  const Json* value = args.find(key);
  return value && value->is_bool() && value->as_bool();
}

bool is_norm(const std::string& name) {
  return name.ends_with("layernorm.weight");
}

bool is_vocabulary(const std::string& name) {
  return name == kEmbedding || name == kHead;
}

JoinedTensor empty_tensor(const MappedTensor& wanted, const Json& args) {
  const bool bias = wanted.ours.ends_with(".bias") || wanted.shape.rank == 1;
  return {.name = wanted.ours,
          .shape = wanted.shape,
          .columns = bias ? 1 : wanted.shape.back(),
          .parts = {},
          .padded = is_vocabulary(wanted.ours),
          .add_one = is_norm(wanted.ours) && args_flag(args, "apply_layernorm_1p")};
}

std::vector<JoinedTensor> join_all(HeldByName& held, const ModelConfig& config, const Json& args,
                                   const Joiner& joiner, const std::string& where) {
  std::vector<JoinedTensor> out;
  std::set<std::string> missing, left;
  if (!config.untied_head && held.contains(kHead)) {  // a copy of the embedding, of a later stage
    auto& sets = held[kEmbedding];
    for (auto& copy : held[kHead]) sets.push_back(std::move(copy));
    held.erase(kHead);
  }
  for (const MappedTensor& wanted : mapped_tensors(family_of(config), config)) {
    const auto found = held.find(wanted.ours);
    if (wanted.absent) continue;
    if (found == held.end()) {
      missing.insert(wanted.ours);
      continue;
    }
    JoinedTensor tensor = empty_tensor(wanted, args);
    joiner.join(tensor, found->second[0], tensor.parts);
    for (size_t copy = 1; copy < found->second.size(); ++copy)
      joiner.join(tensor, found->second[copy], tensor.copies);
    out.push_back(std::move(tensor));
    held.erase(found);
  }
  for (const auto& [name, sets] : held) left.insert(name);
  if (!missing.empty())
    refuse(where,
           concat(missing.size(), " parameters that its args call for are missing: ", some_of(missing)));
  if (!left.empty())
    refuse(where, concat(left.size(), " parameters have no place in a model of its args: ", some_of(left)));
  return out;
}

void complete(ModelConfig& config, int64_t vocabulary, const std::string& where) {
  config.vocab_size = vocabulary;
  config.finish();
  Problems problems;
  config.validate(problems);
  if (!problems.empty()) refuse(where, join(problems.list(), "; "));
}

int64_t rows_of(const HeldByName& held, const std::string& where) {
  const auto found = held.find(kEmbedding);
  if (found == held.end()) refuse(where, concat("lacks ", quote(kEmbedding)));
  int64_t rows = 0;
  for (const Held& rank : found->second[0]) rows += rank.tensor.extents.empty() ? 0 : rank.tensor.extents[0];
  return rows;
}

MegatronModel open_ranks(const std::string& path, const SourceOptions& options) {
  const Grid grid = locate(path);
  Contents contents = read_ranks(grid, options.crc);
  int layers = 0;
  HeldByName held = with_global_layers(std::move(contents.shares), grid, layers);
  const bool has_args = !contents.args.as_object().empty();
  ModelConfig config = has_args ? megatron_config(contents.args, concat(grid.path, ": args"))
                                : config_of_shapes(held, layers, grid, options);
  if (config.layers != layers)
    refuse(grid.path,
           concat("its args say num_layers ", config.layers, ", but it holds ", layers, " layers"));
  complete(config, true_vocabulary(options, rows_of(held, grid.path), contents.args, grid.path), grid.path);
  const Joiner joiner(config, qkv_order(contents, config, grid.path),
                      args_flag(contents.args, "rotary_interleaved"));
  auto tensors = join_all(held, config, contents.args, joiner, grid.path);
  return {.path = grid.path,
          .config = config,
          .args = std::move(contents.args),
          .iteration = contents.iteration,
          .tensors = std::make_unique<JoinedTensorFile>(grid.path, std::move(tensors))};
}

}  // namespace

int64_t true_vocabulary(const SourceOptions& options, int64_t rows, const Json& args,
                        const std::string& where) {
  int64_t size = options.vocab_size;
  if (!options.tokenizer.empty()) {
    const int64_t ids = make_tokenizer(tokenizer_in(options.tokenizer))->vocab_size();
    if (size != 0 && size < ids)
      fail(ErrorKind::kUsage, "--vocab-size ", size, " is less than the ", ids, " ids of the tokenizer in ",
           options.tokenizer);
    size = std::max(size, ids);
  }
  if (size == 0) {
    std::string hint;
    for (const char* key : {"vocab_size", "orig_vocab_size"})
      if (const Json* said = args.find(key)) hint = concat(" (its args say ", key, ' ', said->dump(), ")");
    refuse(where, concat("its embedding has ", rows,
                         " rows, padding included, and only the tokenizer knows the "
                         "true vocabulary; give --tokenizer DIR or --vocab-size N",
                         hint));
  }
  if (size > rows)
    refuse(where, concat("its embedding has ", rows, " rows, fewer than the vocabulary of ", size,
                         "; give the tokenizer that it was trained with"));
  return size;
}

bool is_megatron(const std::string& path) {
  if (!fs::is_directory(path)) return path.ends_with(".pt");
  if (is_rank_folder(fs::path(path).lexically_normal())) return true;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("mp_rank_") || name == "model_optim_rng.pt" || name == ".metadata") return true;
  }
  return false;
}

MegatronModel open_megatron(const std::string& path, const SourceOptions& options) {
  return open_ranks(path, options);
}

}  // namespace megalith
