#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/name_maps/megatron_names.h"
#include "libcore/checkpoint/name_maps/name_map.h"
#include "libcore/convert/sources/megatron_args.h"
#include "libcore/convert/sources/megatron_parts.h"
#include "libcore/convert/sources/settings.h"
#include "libcore/io/files/file.h"
#include "libcore/json/small_json.h"

// Reads a distributed checkpoint (torch_dist). Its file .metadata, a pickle, lists the chunks of each tensor.
// For each chunk, it says in which bytes of which .distcp file the chunk is. These bytes are a small
// torch.save file of their own.
namespace megalith {
namespace {

using Kind = PickleValue::Kind;
using Extents = std::vector<int64_t>;

constexpr std::string_view kMetadataPackage = "torch.distributed.checkpoint.metadata.";
// Keys that do not belong to the model.
constexpr std::string_view kForeignPrefixes[] = {
    "optimizer.",          "chained_",           "rng_state",     "rerun_state_machine",
    "opt_param_scheduler", "dataloader_",        "iteration",     "args",
    "content_metadata",    "checkpoint_version", "num_floating_", "common_state"};

bool is_foreign(std::string_view key) {
  return std::any_of(std::begin(kForeignPrefixes), std::end(kForeignPrefixes),
                     [&](std::string_view prefix) { return key.starts_with(prefix); });
}

// The bytes of a .distcp file that hold a chunk.
struct Stored {
  std::string file;
  uint64_t offset = 0, length = 0;
};
struct Chunk {
  Extents offsets, sizes;
};
bool is_within(const Chunk& chunk, const Extents& size) {
  bool within = chunk.offsets.size() == size.size() && chunk.sizes.size() == size.size();
  for (size_t axis = 0; within && axis < size.size(); ++axis)
    within = chunk.sizes[axis] <= size[axis] && chunk.offsets[axis] <= size[axis] - chunk.sizes[axis];
  return within;
}

// An entry of .metadata: a tensor, or some other object, which has no chunks.
struct Entry {
  std::string key;
  Extents size;
  std::vector<Chunk> chunks;
  std::string_view type = {};  // "F32"
};

bool has_product(const Extents& extents) {
  int64_t product = 1;
  return std::none_of(extents.begin(), extents.end(), [&](int64_t extent) {
    return __builtin_mul_overflow(product, std::max<int64_t>(extent, 1), &product);
  });
}

/// Reads .metadata.
class Metadata {
 public:
  explicit Metadata(const std::string& path) : file_(path), tree_(parse_pickle(file_.text(), path)) {
    if (tree_.class_name(tree_.root()) != concat(kMetadataPackage, "Metadata"))
      refuse("is not the metadata of a distributed checkpoint");
    read_storage();
  }

  std::vector<Entry> entries() const {
    std::vector<Entry> out;
    const auto& members = dict(tree_.root(), "state_dict_metadata");
    for (size_t i = 0; i < members.size(); i += 2) {
      Entry entry{.key = std::string(text(members[i], "a name")), .size = {}, .chunks = {}};
      if (is_foreign(entry.key) || is_skipped(entry.key)) continue;
      if (tree_.class_name(members[i + 1]) == concat(kMetadataPackage, "TensorStorageMetadata"))
        read_chunks(entry, members[i + 1]);
      out.push_back(std::move(entry));
    }
    return out;
  }

  const Stored& stored(const std::string& key, const Extents& offsets) const {
    const auto found = storage_.find({key, offsets});
    if (found == storage_.end()) refuse("does not say where a chunk of ", quote(key), " lies");
    return found->second;
  }

 private:
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(ErrorKind::kData, file_.path(), ": ", parts...);
  }
  PickleRef member(PickleRef object, const char* name) const {
    const auto found = tree_.find_ref(object, name);
    if (!found) refuse("an object has no ", quote(name));
    return *found;
  }
  const std::vector<PickleRef>& dict(PickleRef object, const char* name) const {
    const PickleRef found = member(object, name);
    if (tree_[found].kind != Kind::kDict) refuse(quote(name), " is not a dict");
    return tree_.members(found);
  }
  std::string_view text(PickleRef ref, const char* what) const {
    if (tree_[ref].kind != Kind::kText) refuse(what, " is not a string");
    return tree_[ref].text();
  }
  int64_t whole(PickleRef ref, const char* what) const {
    if (tree_[ref].kind != Kind::kInt || tree_[ref].whole() < 0)
      refuse(quote(what), " is not a natural number");
    return tree_[ref].whole();
  }
  Extents extents(PickleRef object, const char* name) const {
    Extents out;
    const PickleValue& tuple = tree_[member(object, name)];
    if (tuple.kind != Kind::kTuple) refuse(quote(name), " is not a torch.Size");
    for (const PickleRef item : tuple.items()) out.push_back(whole(item, name));
    return out;
  }
  /// The element type of a tensor, from its TensorProperties, whose state is (dtype, layout, …).
  std::string_view type_of(PickleRef properties, const std::string& key) const {
    const PickleValue& record = tree_[properties];
    const PickleValue* state =
        record.kind == Kind::kRecord && record.items().size() > 2 ? &tree_[record.items().back()] : nullptr;
    const PickleValue* type = state && state->kind == Kind::kTuple && !state->items().empty()
                                  ? &tree_[state->items()[0]]
                                  : tree_.find(properties, "dtype");
    const TorchType* known = nullptr;
    if (type && type->kind == Kind::kClass) known = tree_.classes()[static_cast<size_t>(type->whole())].type;
    if (!known) refuse("does not say which type ", quote(key), " has");
    return known->name;
  }
  void read_chunks(Entry& entry, PickleRef object) const {
    entry.size = extents(object, "size");
    if (!has_product(entry.size)) refuse("the extents of ", quote(entry.key), " multiply to more than 2^63");
    entry.type = type_of(member(object, "properties"), entry.key);
    const PickleValue& chunks = tree_[member(object, "chunks")];
    if (chunks.kind != Kind::kList) refuse("the chunks of ", quote(entry.key), " are not a list");
    for (const PickleRef chunk : chunks.items()) {
      entry.chunks.push_back({extents(chunk, "offsets"), extents(chunk, "sizes")});
      if (!is_within(entry.chunks.back(), entry.size))
        refuse("a chunk of ", quote(entry.key), " lies outside of it");
    }
    check_declared(entry);
  }
  Shape shape_of(const Extents& extents, const Entry& entry) const {
    return StoredTensor{.name = entry.key, .dtype_name = {}, .dtype = {}, .extents = extents}.shape();
  }
  /// Throws kData unless the chunks cover the declared tensor, each element once.
  void check_declared(const Entry& entry) const {
    IndexedTensor cover{.name = entry.key, .dtype = {}, .shape = shape_of(entry.size, entry), .blocks = {}};
    for (const Chunk& chunk : entry.chunks)
      cover.blocks.push_back(
          {.offset = shape_of(chunk.offsets, entry), .extent = shape_of(chunk.sizes, entry), .file = {}});
    check_cover(cover, ErrorKind::kData, concat(file_.path(), ": tensor ", quote(entry.key)));
  }
  void read_storage() {
    const auto& members = dict(tree_.root(), "storage_data");
    for (size_t i = 0; i < members.size(); i += 2) {
      std::string key(text(member(members[i], "fqn"), "the name of a chunk"));
      if (is_foreign(key) || is_skipped(key)) continue;
      const auto offset = tree_.find_ref(members[i], "offset");
      if (!offset || tree_[*offset].kind != Kind::kTuple) continue;  // the chunk is plain bytes, not a tensor
      const PickleRef info = members[i + 1];
      if (const PickleValue* transform = tree_.find(info, "transform_descriptors");
          transform && transform->kind != Kind::kNone)
        refuse("a chunk of ", quote(key), " is transformed (compressed), which is not supported");
      const Stored stored{std::string(text(member(info, "relative_path"), "the file of a chunk")),
                          static_cast<uint64_t>(whole(member(info, "offset"), "offset")),
                          static_cast<uint64_t>(whole(member(info, "length"), "length"))};
      if (!storage_.emplace(std::pair(key, extents(members[i], "offset")), stored).second)
        refuse("says twice where a chunk of ", quote(key), " lies");
    }
  }

  MappedFile file_;
  PickleTree tree_;
  std::map<std::pair<std::string, Extents>, Stored> storage_;
};

/// The .distcp files, each mapped once.
class ChunkFiles {
 public:
  ChunkFiles(std::string folder, CrcCheck crc) : folder_(std::move(folder)), crc_(crc) {}

  TorchTensor open(const Entry& entry, const Stored& at, const Extents& sizes) {
    const std::string& key = entry.key;
    const auto& bytes = file(at.file);
    const uint64_t size = bytes->file.size();
    if (at.offset > size || at.length > size - at.offset)
      fail(ErrorKind::kData, bytes->file.path(), ": has ", size, " bytes, but a chunk of ", quote(key),
           " occupies bytes ", at.offset, " to ", at.offset + at.length, "; it was probably truncated");
    const TorchFile chunk = open_torch(bytes, at.offset, at.offset + at.length);
    const PickleRef root = chunk.tree.root();
    if (chunk.tree[root].kind != Kind::kTensor || chunk.tensor(root).extents != sizes ||
        chunk.tensor(root).type->name != entry.type)
      fail(ErrorKind::kData, bytes->file.path(), ": the chunk of ", quote(key), " at byte ", at.offset,
           " is not the tensor that .metadata describes");
    return chunk.tensor(root);
  }

 private:
  const std::shared_ptr<TorchBytes>& file(const std::string& name) {
    auto& found = files_[name];
    if (found) return found;
    if (name.empty() || name[0] == '.' ||
        name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
      fail(ErrorKind::kData, folder_, "/.metadata: a chunk is said to be in ", quote(name),
           ", wanted the plain name of a file in the same folder");
    found = std::make_shared<TorchBytes>(folder_ + "/" + name, crc_);
    return found;
  }

  std::string folder_;
  CrcCheck crc_;
  std::map<std::string, std::shared_ptr<TorchBytes>> files_;
};

// Our name for a key. If `stacked`, the key's tensor holds all layers along its first axis, and `layer` is
// -1.
struct DistName {
  std::string ours;  // '#' stands for the layer
  int layer = -1;
  bool stacked = false;
};
std::optional<DistName> dist_name(const std::string& key) {
  constexpr std::string_view kLayers = "decoder.layers.";
  if (const auto name = our_name(key)) return DistName{name->ours, name->layer};
  if (!key.starts_with(kLayers)) return {};
  const auto name = our_name(concat(kLayers, "0.", key.substr(kLayers.size())));
  return name ? std::optional(DistName{name->ours, -1, true}) : std::nullopt;
}

// Collects the parts of all tensors that .metadata names.
class DistReader {
 public:
  DistReader(const std::string& folder, CrcCheck crc)
      : folder_(folder),
        metadata_(folder + "/.metadata"),
        files_(folder, crc),
        entries_(metadata_.entries()) {}

  int64_t embedding_rows() const {
    for (const Entry& entry : entries_)
      if (entry.key == kEmbeddingName && !entry.size.empty()) return entry.size[0];
    fail(ErrorKind::kData, folder_, ": has no ", quote(kEmbeddingName));
  }

  PartsByName parts(const ModelConfig& config, const RowOrder& order) {
    PartsByName found;
    std::set<std::string> unknown;
    for (const Entry& entry : entries_) {
      const auto name = dist_name(entry.key);
      if (!name || entry.chunks.empty())
        unknown.insert(entry.key);
      else
        add(found, *name, entry, config, order);
    }
    if (!unknown.empty())
      fail(ErrorKind::kData, folder_, ": ", unknown.size(),
           " keys have no place in a model here: ", some_of(unknown));
    return found;
  }

 private:
  void add(PartsByName& found, const DistName& name, const Entry& entry, const ModelConfig& config,
           const RowOrder& order) {
    if (name.stacked && (entry.size.empty() || entry.size[0] != config.layers))
      fail(ErrorKind::kData, folder_, ": ", quote(entry.key), " stacks ",
           entry.size.empty() ? 0 : entry.size[0], " layers, but its args say num_layers ", config.layers);
    for (const Chunk& chunk : entry.chunks) {
      JoinedPart part{.from = files_.open(entry, metadata_.stored(entry.key, chunk.offsets), chunk.sizes)};
      const size_t axis = name.stacked ? 1 : 0;  // the axis that counts the rows
      part.ours.row = chunk.offsets.size() > axis ? chunk.offsets[axis] : 0;
      part.ours.rows = chunk.sizes.size() > axis ? chunk.sizes[axis] : 1;
      part.ours.column = chunk.offsets.size() > axis + 1 ? chunk.offsets[axis + 1] : 0;
      part.ours.columns = chunk.sizes.size() > axis + 1 ? chunk.sizes[axis + 1] : 1;
      if (sharding_of(name.ours, config.swiglu) == TensorSharding::kQkv && order.head != 0)
        set_row_order(part, order, config);
      if (!name.stacked) {
        found[with_layer(name.ours, name.layer)].parts.push_back(std::move(part));
        continue;
      }
      for (int64_t plane = 0; plane < chunk.sizes[0]; ++plane) {
        part.plane = plane;
        found[with_layer(name.ours, static_cast<int>(chunk.offsets[0] + plane))].parts.push_back(part);
      }
    }
  }

  std::string folder_;
  Metadata metadata_;
  ChunkFiles files_;
  std::vector<Entry> entries_;
};

// Throws kData if metadata.json names a format that cannot be read. The oldest checkpoints have no such file
// and are accepted.
void check_backend(const std::string& folder) {
  const std::string path = folder + "/metadata.json";
  if (!file_exists(path)) return;
  const Json json = load_own_small(path);
  const Json* backend = json.find("sharded_backend");
  const Json* version = json.find("sharded_backend_version");
  if (!backend || !backend->is_string() || backend->as_string() != "torch_dist")
    fail(ErrorKind::kData, path, ": \"sharded_backend\" is ", backend ? backend->dump() : "missing",
         "; torch_dist can be read");
  if (version && (!version->is_int() || version->as_int() != 1))
    fail(ErrorKind::kData, path, ": \"sharded_backend_version\" is ", version->dump(), "; 1 can be read");
}

}  // namespace

MegatronModel open_megatron_dist(const std::string& folder, const SourceOptions& options) {
  check_backend(folder);
  const TorchFile common = open_torch(folder + "/common.pt", options.crc);
  const MegatronState state = megatron_state(common);
  if (state.args.as_object().empty())
    fail(ErrorKind::kData, folder, "/common.pt: holds no args, which say what the model is");
  ModelConfig config = megatron_config(state.args, folder + "/common.pt: args");
  DistReader reader(folder, options.crc);
  complete_config(config, true_vocabulary(options, reader.embedding_rows(), state.args, folder), folder);
  PartsByName found = reader.parts(config, qkv_row_order(state, config, true, folder));
  const bool less_one = Settings(state.args, folder).flag("apply_layernorm_1p", false);
  auto tensors = join_parts(std::move(found), {config, less_one, folder});
  SourceTraining training{.scheduler = state.scheduler,
                          .no_optimizer = "that of a distributed checkpoint is not read"};
  return {folder,
          config,
          state.args,
          state.iteration,
          std::make_unique<JoinedTensorFile>(folder, std::move(tensors)),
          std::move(training)};
}

}  // namespace megalith
