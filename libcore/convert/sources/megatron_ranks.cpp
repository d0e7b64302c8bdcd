#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/name_maps/megatron_names.h"
#include "libcore/checkpoint/name_maps/name_map.h"
#include "libcore/convert/sources/megatron_args.h"
#include "libcore/convert/sources/megatron_optimizer.h"
#include "libcore/convert/sources/megatron_parts.h"
#include "libcore/convert/sources/settings.h"
#include "libcore/io/files/file.h"
#include "libcore/options/fields.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using Kind = PickleValue::Kind;

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  fail(ErrorKind::kData, where, ": ", what);
}

// The file of one rank.
struct RankFile {
  int tensor = 0, pipeline = 0;
  std::string path;
};
struct Grid {
  std::string path;  // the path that names the checkpoint
  std::vector<RankFile> files = {};
  int tensor = 1, pipeline = 1;  // the parallel sizes
};

// The numbers in the name of a rank's folder: "mp_rank_TT", "mp_rank_TT_PPP" or, with experts, one of these
// and "_EEE". Nothing for other names.
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
  // If folders of other ranks are next to the given file or folder, the whole checkpoint is meant, since one
  // rank is only a part of it.
  const fs::path folder = fs::is_directory(given) ? given : given.parent_path();
  if (is_rank_folder(folder)) {
    Grid grid = grid_of(folder.parent_path().string());
    if (grid.files.size() > 1) return grid;
  }
  return {.path = path, .files = {{0, 0, fs::is_directory(given) ? rank_file(path) : path}}};
}

// One tensor-parallel rank's share of a pipeline stage. With a virtual pipeline, a file has several chunks,
// each with a Share of its own.
struct Share {
  int tensor, pipeline, chunk;
  std::string path;
  /// The tensors by our name, with the file's layer number.
  std::map<std::string, TorchTensor> tensors = {};
  std::vector<RankParam> order = {};  // `tensors` in the order of the file
  RankOptimizer optimizer = {};
  int layers = 0;
};
struct Contents {
  MegatronState state = {};
  bool mcore = false;
  std::vector<Share> shares = {};
  std::set<std::string> unknown = {};  // keys that our models have no place for
};

void add_leaf(Contents& contents, Share& share, const TorchFile& file, const TorchLeaf& leaf) {
  if (is_skipped(leaf.name)) return;
  const auto name = our_name(leaf.name);
  if (!name || file.tree[leaf.value].kind != Kind::kTensor) {
    contents.unknown.insert(leaf.name);
    return;
  }
  contents.mcore = contents.mcore || leaf.name.find("linear_qkv") != std::string::npos;
  share.layers = std::max(share.layers, name->layer + 1);
  const auto [place, added] =
      share.tensors.emplace(with_layer(name->ours, name->layer), file.tensor(leaf.value));
  if (!added) refuse(share.path, concat("key ", quote(leaf.name), " and another key are the same parameter"));
  share.order.push_back({leaf.name, place->first, &place->second});
}

// The models in a rank's file: the value of the key "model" or, with a virtual pipeline, those of "model0",
// "model1", …
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
  refuse(file.path(), concat("holds no \"model\", so it is not a checkpoint of Megatron-LM; it holds ",
                             keys.empty() ? "nothing" : some_of(keys)));
}

void check_sizes(const Json& args, const Grid& grid) {
  const auto check = [&](const char* key, int found, const char* what) {
    const Json* said = args.find(key);
    if (said && (!said->is_int() || said->as_int() != found))
      refuse(grid.path, concat("its args say ", key, ' ', said->dump(), ", but ", found, ' ', what,
                               found == 1 ? " rank is" : " ranks are",
                               " there; give the folder of the iteration with all its mp_rank folders"));
  };
  check("tensor_model_parallel_size", grid.tensor, "tensor-parallel");
  check("pipeline_model_parallel_size", grid.pipeline, "pipeline");
}

// Throws kData if this rank's file contradicts the first rank's file about the model or its iteration. Args
// about the rank itself (its number, paths, times) may differ.
void check_same_state(const MegatronState& first, const MegatronState& own, const RankFile& rank,
                      const Grid& grid) {
  const auto differ = [&](std::string_view what) {
    refuse(rank.path, concat("disagrees with ", grid.files.front().path, " about ", what,
                             "; the files belong to different checkpoints"));
  };
  if (own.iteration != first.iteration) differ("the iteration");
  if (own.version != first.version) differ("checkpoint_version");
  if (own.args.as_object().empty() != first.args.as_object().empty()) differ("whether there are args");
  if (own.args.as_object().empty()) return;
  check_sizes(own.args, grid);
  for (const char* flag : {"rotary_interleaved", "apply_layernorm_1p"})
    if (Settings(own.args, rank.path).flag(flag, false) != Settings(first.args, grid.path).flag(flag, false))
      differ(flag);
  const auto differences =
      megalith::differences(megatron_config(first.args, grid.files.front().path + ": args"),
                            megatron_config(own.args, rank.path + ": args"));
  if (!differences.empty())
    differ(concat("--", differences.front().name, ": ", differences.front().theirs, " there, ",
                  differences.front().ours, " here"));
}

// For each file, the number of the rank that wrote it, if the args say it.
using WriterRanks = std::vector<std::optional<int64_t>>;

// Detects exchanged folders by the numbers of the ranks that wrote the files. In a run, the first
// data-parallel rank writes. In both of Megatron's rank orders, the numbers of these ranks increase with the
// tensor rank and with the stage. A tool that writes several files in one process gives them equal numbers.
void check_writers(const Grid& grid, const WriterRanks& writers) {
  if (std::find(writers.begin(), writers.end(), std::nullopt) != writers.end()) return;
  for (size_t i = 1; i < writers.size(); ++i)
    if (*writers[i] < *writers[i - 1])
      refuse(grid.files[i].path,
             concat("its args say that rank ", *writers[i], " wrote it, but rank ", *writers[i - 1],
                    " wrote ", grid.files[i - 1].path, "; give the folders their original names"));
}

Contents read_ranks(const Grid& grid, const SourceOptions& options) {
  Contents contents;
  WriterRanks writers;
  for (const RankFile& rank : grid.files) {
    const TorchFile file = open_torch(rank.path, options.crc, options.writing);
    MegatronState state = megatron_state(file);
    const Json* number = state.args.find("rank");
    writers.push_back(number && number->is_int() ? std::optional(number->as_int()) : std::nullopt);
    if (&rank == &grid.files.front()) {
      contents.state = std::move(state);
      check_sizes(contents.state.args, grid);
    } else {
      check_same_state(contents.state, state, rank, grid);
    }
    const auto chunks = chunks_of(file);
    for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      Share share{rank.tensor, rank.pipeline, static_cast<int>(chunk), rank.path};
      for (const TorchLeaf& leaf : leaves_of(file.tree, chunks[chunk], rank.path))
        add_leaf(contents, share, file, leaf);
      if (static_cast<size_t>(share.layers) > share.tensors.size())
        refuse(rank.path, concat("holds layer ", share.layers - 1, ", but not those before it"));
      if (options.optimizer && chunks.size() > 1) share.optimizer.none = "of a virtual pipeline";
      if (options.optimizer && chunks.size() == 1) share.optimizer = read_rank_optimizer(file, share.order);
      contents.shares.push_back(std::move(share));
    }
    if (contents.shares.size() != chunks.size() * static_cast<size_t>(&rank - grid.files.data() + 1))
      refuse(rank.path,
             concat("holds ", chunks.size(), " chunks of a virtual pipeline, but other ranks do not"));
  }
  check_writers(grid, writers);
  if (!contents.unknown.empty())
    refuse(grid.path, concat(contents.unknown.size(),
                             " keys have no place in a model here: ", some_of(contents.unknown)));
  return contents;
}

// One rank's tensor of a parameter. HeldByName maps each parameter to sets of such tensors, with one tensor
// per tensor-parallel rank in a set. There are several sets if several stages hold copies of the parameter.
struct Held {
  std::string path;
  TorchTensor tensor;
};
using HeldByName = std::map<std::string, std::vector<std::vector<Held>>>;

// Throws kData if folders were exchanged: only the first stage may hold the position table, and only the last
// stage the last norm.
void check_ends(const Share& share, bool first, bool last) {
  for (const auto& [name, tensor] : share.tensors) {
    const bool norm = name.starts_with("decoder.final_layernorm.");
    if ((norm && !last) || (name == kPositionsName && !first))
      refuse(share.path, concat("holds ", quote(name), ", which belongs to the ", norm ? "last" : "first",
                                " stage; its folder has another stage's name"));
  }
  if (first && !share.tensors.contains(kEmbeddingName))
    refuse(share.path, concat("has no ", quote(kEmbeddingName), ", which belongs to the first stage"));
}

// Numbers the layers through the whole model: layer 0 of a share becomes layer `base`. With a virtual
// pipeline, chunk c of every stage comes before chunk c + 1 of any stage.
HeldByName with_global_layers(std::vector<Share> shares, const Grid& grid, int& layers) {
  std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) {
    return std::tuple(a.chunk, a.pipeline, a.tensor) < std::tuple(b.chunk, b.pipeline, b.tensor);
  });
  HeldByName held;
  int base = 0;
  const auto tensor_size = static_cast<size_t>(grid.tensor);
  for (size_t i = 0; i < shares.size(); i += tensor_size) {
    check_ends(shares[i], i == 0, i + tensor_size >= shares.size());
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

// The configuration of a release that was saved without args, derived from the shapes of its tensors. The
// model is assumed to be like GPT-2.
ModelConfig config_of_shapes(const HeldByName& held, int layers, const Grid& grid,
                             const SourceOptions& options) {
  const auto extents = [&](const std::string& name) -> const std::vector<int64_t>& {
    const auto it = held.find(name);
    if (it == held.end() || it->second[0][0].tensor.extents.size() != 2)
      refuse(grid.path, concat("has no args, and no matrix ", quote(name),
                               " from which the model's size could be told"));
    return it->second[0][0].tensor.extents;
  };
  if (options.heads == 0)
    refuse(grid.path,
           "has no args, and tensors do not tell the number of attention heads; give --num-attention-heads");
  ModelConfig c;
  c.layers = layers;
  c.hidden = static_cast<int>(extents(kEmbeddingName)[1]);
  c.max_positions = c.seq_length = static_cast<int>(extents(kPositionsName)[0]);
  c.ffn_hidden = static_cast<int>(extents("decoder.layers.0.mlp.linear_fc1.weight")[0] *
                                  static_cast<int64_t>(grid.tensor));
  c.heads = options.heads;
  if (c.hidden % c.heads != 0)
    refuse(grid.path,
           concat("--num-attention-heads ", c.heads, " does not divide the model's width ", c.hidden));
  return c;
}

std::string shape_text(const std::vector<int64_t>& extents) {
  std::vector<std::string> numbers;
  for (const int64_t extent : extents) numbers.push_back(std::to_string(extent));
  return concat("[", join(numbers, ", "), "]");
}

JoinedPart whole_of(const TorchTensor& tensor) {
  JoinedPart part{.from = tensor};
  part.ours.rows = tensor.extents.empty() ? 1 : tensor.extents[0];
  part.ours.columns = tensor.extents.size() < 2 ? 1 : tensor.extents[1];
  return part;
}

int64_t rows_of(const std::vector<Held>& ranks) {
  int64_t rows = 0;
  for (const Held& rank : ranks) rows += whole_of(rank.tensor).ours.rows;
  return rows;
}

// Adds the gates and the ups of a rank as two parts. A rank's file has the rows [gates; ups]; in our tensor,
// the gates of all ranks come before all ups.
void append_halves(std::vector<JoinedPart>& parts, const JoinedPart& whole, int64_t ups, int64_t at) {
  const int64_t half = whole.ours.rows / 2;
  for (const int64_t which : {0, 1}) {
    parts.push_back(whole);
    parts.back().from_row = which * half;
    parts.back().ours.rows = half;
    parts.back().ours.row = which * ups + at;
  }
}

// Joins the tensors of all ranks.
class Joiner {
 public:
  Joiner(const ModelConfig& config, RowOrder order) : config_(config), order_(order) {}

  // `sets`: the parameter's tensors, then the copies of them on other stages.
  FoundParts join(const std::string& name, const std::vector<std::vector<Held>>& sets) const {
    FoundParts found;
    append(found, name, sets[0], found.parts);
    for (size_t copy = 1; copy < sets.size(); ++copy) append(found, name, sets[copy], found.copies);
    return found;
  }

 private:
  void append(FoundParts& found, const std::string& name, const std::vector<Held>& ranks,
              std::vector<JoinedPart>& parts) const {
    const TensorSharding sharding = sharding_of(name, config_.swiglu);
    int64_t at = 0;
    for (const Held& rank : ranks) {
      if (rank.tensor.extents != ranks.front().tensor.extents)
        refuse(rank.path, concat("holds ", shape_text(rank.tensor.extents), " of ", quote(name), ", but ",
                                 ranks.front().path, " holds ", shape_text(ranks.front().tensor.extents),
                                 "; ranks hold equal parts"));
      JoinedPart part = whole_of(rank.tensor);
      switch (sharding) {
        case TensorSharding::kWhole:
          (&rank == &ranks.front() ? parts : found.copies).push_back(part);
          break;
        case TensorSharding::kQkv:
          set_row_order(part, order_, config_);
          [[fallthrough]];
        case TensorSharding::kRows:
          part.ours.row = std::exchange(at, at + part.ours.rows);
          parts.push_back(part);
          break;
        case TensorSharding::kColumns:
          part.ours.column = std::exchange(at, at + part.ours.columns);
          parts.push_back(part);
          break;
        case TensorSharding::kGateUp:
          append_halves(parts, part, rows_of(ranks) / 2, std::exchange(at, at + part.ours.rows / 2));
          break;
      }
    }
  }

  const ModelConfig& config_;
  RowOrder order_;
};

// The optimizer's tensors of a rank, and the prefixes of their names.
using StateTensors = std::map<std::string, TorchTensor> RankOptimizer::*;
constexpr std::pair<StateTensors, const char*> kStates[] = {{&RankOptimizer::m, "optim.m."},
                                                            {&RankOptimizer::v, "optim.v."},
                                                            {&RankOptimizer::masters, "optim.master."}};

std::vector<Share> with_state(std::vector<Share> shares, StateTensors part) {
  for (Share& share : shares) share.tensors = share.optimizer.*part;
  return shares;
}

// Adds the optimizer's steps and loss scale, but only if all ranks have the optimizer's state. Throws kData
// if its step or type differs between ranks.
SourceTraining training_of(const Contents& contents, SourceTraining training) {
  const RankOptimizer& first = contents.shares.front().optimizer;
  for (const Share& share : contents.shares) {
    if (!share.optimizer.none.empty()) training.no_optimizer = share.optimizer.none;
    if (share.optimizer.steps != first.steps || share.optimizer.masters.empty() != first.masters.empty())
      refuse(share.path, "its optimizer's state has another step or type than that of the other ranks");
  }
  if (!training.no_optimizer.empty()) return training;
  training.optimizer_steps = first.steps;
  training.loss_scale = first.loss_scale;
  return training;
}

const std::vector<Held>& embedding_of(const HeldByName& held, const std::string& where) {
  const auto found = held.find(kEmbeddingName);
  if (found == held.end()) refuse(where, concat("has no ", quote(kEmbeddingName)));
  return found->second[0];
}

// In a tied model, turns the head, which the last stage holds, into a second copy of the embedding. Copies
// are later checked to be equal.
void tie_head(HeldByName& held) {
  auto head = held.extract(kHeadName);
  if (head.empty()) return;
  auto& sets = held[kEmbeddingName];
  for (auto& copy : head.mapped()) sets.push_back(std::move(copy));
}

}  // namespace

bool is_megatron_rank_folder(const std::string& path) {
  return rank_numbers(fs::path(path).lexically_normal().filename().string()).has_value();
}

MegatronModel open_megatron_ranks(const std::string& path, const SourceOptions& options) {
  const Grid grid = locate(path);
  Contents contents = read_ranks(grid, options);
  const Json& args = contents.state.args;
  int layers = 0;
  HeldByName held = with_global_layers(contents.shares, grid, layers);
  ModelConfig config = args.as_object().empty() ? config_of_shapes(held, layers, grid, options)
                                                : megatron_config(args, concat(grid.path, ": args"));
  if (config.layers != layers)
    refuse(grid.path,
           concat("its args say num_layers ", config.layers, ", but it holds ", layers, " layers"));
  complete_config(config, true_vocabulary(options, rows_of(embedding_of(held, grid.path)), args, grid.path),
                  grid.path);
  if (!config.untied_head) tie_head(held);
  const Joiner joiner(config, qkv_row_order(contents.state, config, contents.mcore, grid.path));
  std::vector<JoinedTensor> tensors;
  const auto join = [&](const HeldByName& sets, bool norms_less_one, const std::string& prefix) {
    PartsByName found;
    for (const auto& [name, set] : sets) found[name] = joiner.join(name, set);
    for (JoinedTensor& tensor : join_parts(std::move(found), {config, norms_less_one, grid.path}, prefix))
      tensors.push_back(std::move(tensor));
  };
  const bool less_one = Settings(args, grid.path).flag("apply_layernorm_1p", false);
  join(held, less_one, "");
  SourceTraining training{.scheduler = contents.state.scheduler};
  if (options.optimizer) training = training_of(contents, std::move(training));
  if (training.optimizer_steps)
    for (const auto& [part, prefix] : kStates) {
      if ((contents.shares.front().optimizer.*part).empty()) continue;
      HeldByName state = with_global_layers(with_state(contents.shares, part), grid, layers);
      if (!config.untied_head) tie_head(state);
      join(state, false, prefix);
    }
  return {grid.path,
          config,
          args,
          contents.state.iteration,
          std::make_unique<JoinedTensorFile>(grid.path, std::move(tensors)),
          std::move(training)};
}

}  // namespace megalith
