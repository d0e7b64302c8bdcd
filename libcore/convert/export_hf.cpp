#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/name_map.h"
#include "libcore/checkpoint/safetensors.h"
#include "libcore/convert/convert.h"
#include "libcore/convert/tokenizer_folder.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
constexpr const char* kOwnFiles[] = {"config.json", "generation_config.json", "README.md",
                                     "model.safetensors", "model.safetensors.index.json"};

// One tensor to be written, and where it comes from.
struct Export {
  TensorSpec spec;
  const MappedTensor* from;
  size_t part;
};
using Shard = std::vector<Export>;

std::vector<Export> exports_of(const std::vector<MappedTensor>& mapped, const ModelSource& source) {
  std::vector<Export> out;
  std::set<std::string> known;
  for (const MappedTensor& m : mapped) {
    known.insert(m.ours);
    const StoredTensor* stored = m.absent ? nullptr : &source.tensors().at(m.ours);
    if (stored && stored->shape() != m.shape)
      fail(ErrorKind::kData, source.path(), ": tensor ", quote(m.ours), " is ", stored->shape(),
           ", but the options say ", m.shape);
    for (size_t part = 0; part < m.theirs.size(); ++part)
      out.push_back(
          {{m.theirs[part].name, stored ? *stored->dtype : source.dtype(), m.theirs[part].shape}, &m, part});
  }
  for (const StoredTensor& tensor : source.tensors().tensors())
    if (!known.contains(tensor.name) && !tensor.name.starts_with(kOptimizerPrefix))
      fail(ErrorKind::kData, source.path(), ": tensor ", quote(tensor.name), " has no place in a ",
           family_of(source.config()).architecture);
  return out;
}

// In the order of depth, as many as fit (transformers' rule).
std::vector<Shard> shards_of(const std::vector<Export>& all, uint64_t greatest) {
  std::vector<Shard> shards(1);
  uint64_t bytes = 0;
  for (const Export& e : all) {
    if (bytes > 0 && bytes + e.spec.bytes() > greatest) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back(e);
    bytes += e.spec.bytes();
  }
  return shards;
}

std::string shard_name(size_t shard, size_t shards) {
  if (shards == 1) return "model.safetensors";
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", shard + 1, shards);
  return name;
}

// Holds our tensor and theirs, and nothing afterwards: the next one may be the largest.
void write_tensor(SafetensorsWriter& writer, const Export& e, const ModelSource& source) {
  const DType dtype = e.spec.dtype;
  std::vector<std::byte> ours(static_cast<size_t>(e.from->shape.elements()) * size_of(dtype)), theirs;
  const View whole{ours.data(), dtype, e.from->shape};
  if (!e.from->absent) source.tensors().read(Box::whole(e.from->ours, e.from->shape), whole);
  if (e.from->row->transform != Transform::kCopy) {
    theirs.resize(e.spec.bytes());
    to_theirs(*e.from, e.part, whole, {theirs.data(), dtype, e.spec.shape});
    ours.swap(theirs);
  }
  writer.write(e.spec.name, ours.data(), e.spec.bytes());
}

void write_shard(const std::string& path, const Shard& shard, const ModelSource& source, Progress& progress,
                 uint64_t& done) {
  std::vector<TensorSpec> specs;
  std::map<std::string, const Export*> by_name;
  for (const Export& e : shard) {
    specs.push_back(e.spec);
    by_name[e.spec.name] = &e;
  }
  SafetensorsWriter writer(path, std::move(specs));
  for (const TensorSpec& spec : writer.order()) {
    write_tensor(writer, *by_name.at(spec.name), source);
    done += spec.bytes();
    progress.advance_to(static_cast<int64_t>(done));
  }
  writer.finish();
}

Json index_of(const std::vector<Shard>& shards) {
  uint64_t bytes = 0;
  int64_t parameters = 0;
  std::map<std::string, std::string> files;
  for (size_t i = 0; i < shards.size(); ++i)
    for (const Export& e : shards[i]) {
      bytes += e.spec.bytes();
      parameters += e.spec.shape.elements();
      files[e.spec.name] = shard_name(i, shards.size());
    }
  Json map = Json::object();
  for (const auto& [tensor, file] : files) map.as_object().emplace_back(tensor, file);
  return Json::Object{{"metadata", Json::Object{{"total_parameters", parameters}, {"total_size", bytes}}},
                      {"weight_map", map}};
}

std::string model_card(const ModelSource& source, const std::string& title, int64_t parameters) {
  const ModelConfig& c = source.config();
  const NameMap& names = family_of(c);
  std::string card = concat("---\nlibrary_name: transformers\npipeline_tag: text-generation\ntags:\n- ",
                            names.family, "\n---\n\n# ", title, "\n\n");
  card += concat("A ", names.architecture, " of ", format_count(parameters), " parameters: ", c.layers,
                 " layers, width ", c.hidden, ", ", c.heads, " attention heads, vocabulary ",
                 format_count(c.vocab_size), ", context ", format_count(c.max_positions),
                 " tokens. Stored as ", name_of(source.dtype()), ".\n\n");
  if (source.iteration() != kRelease)
    card += concat("Trained with Megalith for ", format_count(source.iteration()), " iterations.\n\n");
  return card +
         "```python\nfrom transformers import pipeline\ngenerate = pipeline(\"text-generation\", "
         "\"PATH_OF_THIS_FOLDER\")\n"
         "print(generate(\"def hello_world():\")[0][\"generated_text\"])\n```\n";
}

// The output folder's own name ("out/" is "out").
std::string title_of(const std::string& output) {
  const fs::path path = fs::absolute(output).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

bool is_own_file(const std::string& name) {
  const bool shard = name.starts_with("model-") && name.ends_with(".safetensors");
  return shard || is_tokenizer_file(name) ||
         std::find(std::begin(kOwnFiles), std::end(kOwnFiles), name) != std::end(kOwnFiles);
}

void refuse_strangers(const std::string& output, const ModelSource& source) {
  if (!file_exists(output)) return;
  if (!fs::is_directory(output))
    fail(ErrorKind::kUsage, "--output ", output, " is a file; wanted a folder to write");
  if (fs::equivalent(output, source.path()))
    fail(ErrorKind::kUsage, "--output ", output, " is the model that is read; give another folder");
  for (const auto& entry : fs::directory_iterator(output))
    if (const std::string name = entry.path().filename().string(); !is_own_file(name))
      fail(ErrorKind::kUsage, "--output ", output, " holds ", quote(name),
           ", which is no part of an exported model; give a new folder");
}

}  // namespace

void export_hf(const ModelSource& source, const std::string& tokenizer_folder, const std::string& output,
               uint64_t max_shard) {
  refuse_strangers(output, source);
  const NameMap& names = family_of(source.config());
  const auto mapped = mapped_tensors(names, source.config());
  const auto shards = shards_of(exports_of(mapped, source), max_shard);
  const HfTokenizer tokenizer =
      tokenizer_folder.empty() ? HfTokenizer{} : hf_tokenizer(tokenizer_folder, source.config());
  if (tokenizer.files.empty())
    warn("the model has no tokenizer; the exported folder takes and gives token ids only");

  const Json index = index_of(shards);
  AtomicDirectory folder(output);
  const auto write = [&](const std::string& name, const std::string& text) {
    write_file((folder.path() / name).string(), text);
  };
  write("config.json", hf_config(source.config(), source.dtype(), tokenizer.ids).dump(2) + "\n");
  write("generation_config.json", hf_generation_config(tokenizer.ids).dump(2) + "\n");
  write("README.md", model_card(source, title_of(output), index["metadata"]["total_parameters"].as_int()));
  for (const auto& [name, contents] : tokenizer.files) write(name, contents);
  Progress progress("writing", index["metadata"]["total_size"].as_int(), "B");
  uint64_t done = 0;
  for (size_t i = 0; i < shards.size(); ++i)
    write_shard((folder.path() / shard_name(i, shards.size())).string(), shards[i], source, progress, done);
  if (shards.size() > 1) write("model.safetensors.index.json", index.dump(2) + "\n");
  folder.commit();
}

}  // namespace megalith
