#include "libcore/convert/sources/megatron_source.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/name_maps/megatron_names.h"
#include "libcore/checkpoint/name_maps/name_map.h"
#include "libcore/convert/sources/hf_config.h"
#include "libcore/convert/sources/megatron_args.h"
#include "libcore/convert/sources/megatron_parts.h"
#include "libcore/convert/sources/settings.h"
#include "libcore/convert/sources/tokenizer_folder.h"
#include "libcore/io/files/file.h"
#include "libcore/text/formats/make_tokenizer.h"
#include "libcore/text/tokenizer_files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using Kind = PickleValue::Kind;
constexpr size_t kMaxNamed = 5;  // number of names listed in one error message
constexpr double kGreatestIteration = 9e15;

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  fail(ErrorKind::kData, where, ": ", what);
}

/// A number of the file's dict; nothing if it is absent or None.
std::optional<double> number_of(const TorchFile& file, const char* key) {
  const PickleValue* value = file.tree.find(file.tree.root(), key);
  if (!value || value->kind == Kind::kNone) return {};
  if (value->kind == Kind::kInt) return static_cast<double>(value->whole());
  if (value->kind == Kind::kFloat) return value->real();
  refuse(file.path(), concat("its ", quote(key), " is not a number"));
}

int64_t iteration_of(const TorchFile& file) {
  const auto iteration = number_of(file, "iteration");
  if (!iteration) return kRelease;
  if (!(*iteration >= 0 && *iteration < kGreatestIteration))
    refuse(file.path(),
           concat("its \"iteration\" is ", format_double(*iteration), ", wanted a count of steps"));
  return static_cast<int64_t>(*iteration);
}

bool is_norm(const std::string& name) {
  return name.ends_with("layernorm.weight");
}

bool is_vocabulary(const std::string& name) {
  return name == kEmbeddingName || name == kHeadName;
}

JoinedTensor joined(const RenamedTensor& wanted, FoundParts found, bool norms_less_one,
                    const std::string& prefix) {
  const bool vector = is_vector(wanted.ours, wanted.shape.rank);
  return {.name = prefix + wanted.ours,
          .shape = wanted.shape,
          .columns = vector ? 1 : wanted.shape.back(),
          .vector = vector,
          .parts = std::move(found.parts),
          .copies = std::move(found.copies),
          .padded = is_vocabulary(wanted.ours),
          .add_one = norms_less_one && is_norm(wanted.ours)};
}

}  // namespace

std::string some_of(const std::set<std::string>& names) {
  std::vector<std::string> shown;
  for (const std::string& name : names)
    if (shown.size() < kMaxNamed) shown.push_back(quote(name));
  return join(shown, ", ") + (names.size() > shown.size() ? ", …" : "");
}

MegatronState megatron_state(const TorchFile& file) {
  const PickleTree& tree = file.tree;
  MegatronState state;
  if (const auto args = tree.find_ref(tree.root(), "args")) state.args = args_json(tree, *args);
  state.version = number_of(file, "checkpoint_version");
  state.iteration = iteration_of(file);
  if (const auto scheduler = tree.find_ref(tree.root(), "opt_param_scheduler"))
    state.scheduler = args_json(tree, *scheduler);
  return state;
}

void complete_config(ModelConfig& config, int64_t vocabulary, const std::string& where) {
  config.vocab_size = vocabulary;
  config.finish();
  Problems problems;
  config.validate(problems);
  if (!problems.empty()) refuse(where, problems.text("; "));
}

RowOrder qkv_row_order(const MegatronState& state, const ModelConfig& config, bool mcore,
                       const std::string& where) {
  const double version = state.version.value_or(mcore ? 3 : 0);
  RowOrder order{.group_heads = config.heads / config.kv_heads() + 2,
                 .interleaved = Settings(state.args, where).flag("rotary_interleaved", false)};
  if (version != 0 && version != 1 && version != 2 && version != 3)
    refuse(where, concat("has checkpoint_version ", format_double(version), "; 0 to 3 can be read"));
  if (version < 2 && config.kv_heads() != config.heads)
    refuse(where, concat("has checkpoint_version ", format_double(version),
                         ", which predates --group-query-attention"));
  if (version == 0) order.qkv = QkvOrder::kByKind;
  if (version == 1) order.qkv = QkvOrder::kByElement;
  if (order.qkv != QkvOrder::kByGroup || order.interleaved) order.head = config.kv_channels;
  return order;
}

void set_row_order(JoinedPart& part, RowOrder order, const ModelConfig& config) {
  const int64_t group = order.group_heads * config.kv_channels;
  if (part.ours.rows % group != 0 || part.ours.row % group != 0)
    refuse(part.from.bytes->file.path(),
           concat("holds ", part.ours.rows, " rows of a fused QKV from row ", part.ours.row,
                  " on, which are not whole groups of ", order.group_heads, " heads of ", config.kv_channels,
                  "; more tensor-parallel ranks than key/value groups are not supported"));
  order.heads = part.ours.rows / (int64_t{3} * config.kv_channels);
  part.order = order;
}

std::vector<JoinedTensor> join_parts(PartsByName found, const PartsOf& model, const std::string& prefix) {
  const auto& [config, norms_less_one, where] = model;
  std::vector<JoinedTensor> out;
  std::set<std::string> missing, left;
  for (const RenamedTensor& wanted : renamed_tensors(family_of(config).names, config)) {
    if (wanted.absent) continue;
    auto parts = found.extract(wanted.ours);
    if (parts.empty())
      missing.insert(wanted.ours);
    else
      out.push_back(joined(wanted, std::move(parts.mapped()), norms_less_one, prefix));
  }
  for (const auto& [name, parts] : found) left.insert(name);
  if (!missing.empty())
    refuse(where,
           concat(missing.size(), " parameters that its args require are missing: ", some_of(missing)));
  if (!left.empty())
    refuse(where, concat(left.size(), " parameters have no place in a model of its args: ", some_of(left)));
  return out;
}

namespace {

/// The vocabulary's size. It is --vocab-size or, without that, the args' vocab_size, but at least the number
/// of the tokenizer's ids.
int64_t vocabulary_of_tokenizer(const SourceOptions& options, int64_t rows, const Json& args) {
  const int64_t given = options.vocab_size;
  TokenizerFiles files = find_tokenizer(options.tokenizer).value_or(TokenizerFiles{});
  files.eod = eod_of(args);
  const int64_t ids = make_tokenizer(files)->vocab_size();
  if (given != 0 && given < ids)
    fail(ErrorKind::kUsage, "--vocab-size ", given, " is less than the ", ids, " ids of the tokenizer in ",
         options.tokenizer.path);
  const Json* const said = options.beside ? args.find("vocab_size") : nullptr;
  const bool known = given == 0 && said != nullptr && said->is_int() && said->as_int() <= rows;
  return std::max(known ? said->as_int() : given, ids);
}

// The vocab_size of the args; 0 if they have none. Megatron's args have one only if --vocab-size was given;
// the args that we write always do.
int64_t vocabulary_of_args(const Json& args) {
  const Json* said = args.find("vocab_size");
  return said && said->is_int() && said->as_int() > 0 ? said->as_int() : 0;
}

[[noreturn]] void refuse_unknown_vocabulary(int64_t rows, const Json& args, const std::string& where) {
  const Json* said = args.find("orig_vocab_size");
  refuse(where, concat("its embedding has ", rows,
                       " rows, padding included, and only the tokenizer knows the "
                       "true vocabulary; put its files next to the checkpoint, or give --tokenizer DIR or "
                       "--vocab-size N",
                       said ? concat(" (its args say orig_vocab_size ", said->dump(), ")") : std::string()));
}

}  // namespace

int64_t true_vocabulary(const SourceOptions& options, int64_t rows, const Json& args,
                        const std::string& where) {
  int64_t size = options.vocab_size;
  if (!options.tokenizer.empty() && !(options.beside && size > 0))
    size = vocabulary_of_tokenizer(options, rows, args);
  if (size == 0) size = vocabulary_of_args(args);
  if (size == 0 && options.padded) return rows;
  if (size == 0) refuse_unknown_vocabulary(rows, args, where);
  if (size > rows)
    refuse(where, concat("its embedding has ", rows, " rows, fewer than the vocabulary of ", size,
                         "; give the tokenizer that it was trained with"));
  return size;
}

bool is_megatron(const std::string& path) {
  if (!fs::is_directory(path)) return path.ends_with(".pt");
  if (is_megatron_rank_folder(path)) return true;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("mp_rank_") || name == "model_optim_rng.pt" || name == ".metadata") return true;
  }
  return false;
}

MegatronModel open_megatron(const std::string& path, const SourceOptions& options) {
  return file_exists(path + "/.metadata") ? open_megatron_dist(path, options)
                                          : open_megatron_ranks(path, options);
}

}  // namespace megalith
