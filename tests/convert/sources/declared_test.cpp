// Changes the shapes and numbers that a file of each format declares. If the changed declaration contradicts
// the stored bytes or the model's configuration, it must be refused. If it is accepted, the tensors must be
// the same as before.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/gguf/gguf.h"
#include "libcore/checkpoint/name_maps/name_map.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/convert/output/adapter.h"
#include "libcore/convert/sources/hf_config.h"
#include "libcore/convert/sources/megatron_args.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/convert/targets/megalith.h"
#include "libcore/io/files/file.h"
#include "libcore/train/schedules/lr.h"
#include "tests/support/files.h"
#include "tests/support/goldens.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::convert_golden;
using test::TempDir;

using Tensors = std::map<std::string, std::pair<std::string, std::vector<float>>>;

Tensors tensors_of(const TensorFile& file) {
  Tensors all;
  for (const StoredTensor& tensor : file.tensors()) {
    const Shape shape = tensor.shape();
    if (shape.elements() > 1'000'000) fail(ErrorKind::kInternal, tensor.name, " is taken as ", shape);
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    file.read(Box::whole(tensor.name, shape), {values.data(), DType::kF32, shape});
    all[tensor.name] = {concat(shape), std::move(values)};
  }
  return all;
}

/// A model or a file whose declarations are changed.
class Declared {
 public:
  Declared(const std::string& from, std::function<Tensors(const std::string&)> read)
      : read_(std::move(read)) {
    fs::copy(from, path(), fs::copy_options::recursive);
    sound_ = read_(path());
  }
  std::string path() const { return dir_ / "model"; }
  /// Writes `bytes` as the file and reads everything. Expects an error, or the tensors of the unchanged file.
  /// Then restores the file.
  void expect_seen(const std::string& file, const std::string& bytes, const std::string& what) {
    const std::string full = path() + "/" + file, before = read_file(full);
    std::ofstream(full, std::ios::binary) << bytes;
    try {
      const Tensors found = read_(path());
      EXPECT_TRUE(found == sound_) << file << ": " << what << " was taken";
      ++same_;
    } catch (const Error& error) {
      EXPECT_TRUE(error.kind() == ErrorKind::kData || error.kind() == ErrorKind::kUsage)
          << file << ": " << what << ": " << error.what();
      ++refused_;
    }
    std::ofstream(full, std::ios::binary) << before;
  }
  int refused() const { return refused_; }
  int same() const { return same_; }

 private:
  TempDir dir_;
  std::function<Tensors(const std::string&)> read_;
  Tensors sound_;
  int refused_ = 0, same_ = 0;
};

/// The parameters as a conversion reads them: in the shapes that the model's configuration gives.
Tensors parameters_of(const ModelSource& source) {
  Tensors all;
  for (const RenamedTensor& tensor : renamed_tensors(family_of(source.config()).names, source.config())) {
    std::vector<float> values(static_cast<size_t>(tensor.shape.elements()));
    source.tensors().read(Box::whole(tensor.ours, tensor.shape), {values.data(), DType::kF32, tensor.shape});
    all[tensor.ours] = {concat(tensor.shape), std::move(values)};
  }
  return all;
}

Tensors model_tensors(const std::string& path) {
  return tensors_of(ModelSource(path, {.vocab_size = 6, .heads = 4, .crc = CrcCheck::kNo}).tensors());
}

/// Other shapes that a file could declare for a tensor.
std::vector<std::vector<int64_t>> other_shapes(const std::vector<int64_t>& shape) {
  std::vector<std::vector<int64_t>> all;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    for (const int64_t extent : {int64_t{0}, shape[axis] + 1, 2 * shape[axis], int64_t{1} << 40}) {
      all.push_back(shape);
      all.back()[axis] = extent;
    }
  all.push_back({shape.rbegin(), shape.rend()});
  all.push_back(shape);
  all.back().push_back(1);
  all.push_back(shape);
  all.back().insert(all.back().begin(), 1);
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  all.push_back({product});
  std::erase(all, shape);
  return all;
}

/// Changes each extent in the parts of a pickle that match `pattern`. An extent is a small number (opcode K).
void expect_extents_seen(Declared& declared, const std::string& file, const std::string& pattern) {
  const std::string bytes = read_file(declared.path() + "/" + file);
  const std::regex extents(pattern);
  for (auto at = std::sregex_iterator(bytes.begin(), bytes.end(), extents); at != std::sregex_iterator();
       ++at)
    for (ptrdiff_t i = at->position(1); i < at->position(1) + at->length(1); i += 2)
      for (const int other :
           {0, 1, bytes[static_cast<size_t>(i) + 1] + 1, 2 * bytes[static_cast<size_t>(i) + 1]}) {
        std::string changed = bytes;
        changed[static_cast<size_t>(i) + 1] = static_cast<char>(other);
        if (changed != bytes) declared.expect_seen(file, changed, concat("byte ", i, " as ", other));
      }
}

// In a torch file, a tensor is the tuple (storage, offset, extents, strides).
TEST(Declared, ExtentsOfMegatronsRanksAreCompared) {
  for (const char* name : {"v1", "v2_pp", "mcore_te", "mcore_local", "qwen2"}) {
    const std::string from = convert_golden(concat("megatron/", name));
    Declared declared(from, model_tensors);
    for (const auto& entry : fs::recursive_directory_iterator(from))
      if (entry.path().extension() == ".pt")
        expect_extents_seen(declared, entry.path().lexically_relative(from).string(),
                            "QK[^]((?:K[^]){1,3})[\x85\x86\x87]");
    EXPECT_GT(declared.refused(), 20) << name;
  }
}

TEST(Declared, ExtentsOfWeightsInPyTorchsFormAreCompared) {
  const std::string from = convert_golden("megatron/hf_bin");
  Declared declared(from, model_tensors);
  for (const auto& entry : fs::directory_iterator(from))
    if (entry.path().extension() == ".bin")
      expect_extents_seen(declared, entry.path().filename().string(), "QK[^]((?:K[^]){1,3})[\x85\x86\x87]");
  EXPECT_GT(declared.refused(), 50);
}

TEST(Declared, ExtentsOfDistributedCheckpointsAreCompared) {
  for (const char* name : {"dist", "dist_layers"}) {
    Declared declared(convert_golden(concat("megatron/", name)), model_tensors);
    const std::string file = "iter_0000005/.metadata";
    expect_extents_seen(declared, file, "((?:K[^]){1,4})[\x85\x86\x87t]");
    EXPECT_GT(declared.refused(), 100) << name;
    // Declares the size [2^40, 4]: a number of six bytes replaces the first extent of the first "size".
    std::string bytes = read_file(declared.path() + "/" + file);
    const size_t size = bytes.find("size"), at = bytes.find('K', size);
    ASSERT_NE(at, std::string::npos);
    bytes.replace(at, 2, std::string("\x8a\x06\0\0\0\0\0\x01", 8));
    uint64_t frame = 0;
    std::memcpy(&frame, bytes.data() + 3, sizeof frame);
    frame += 6;
    std::memcpy(bytes.data() + 3, &frame, sizeof frame);
    const int before = declared.refused();
    declared.expect_seen(file, bytes, "2^40 rows");
    EXPECT_EQ(declared.refused(), before + 1) << name;
  }
}

/// Changes each shape in the header of a safetensors file.
void expect_shapes_seen(Declared& declared, const std::string& file) {
  const std::string bytes = read_file(declared.path() + "/" + file);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const Json header = Json::parse(bytes.substr(8, length), file);
  for (const auto& [name, tensor] : header.as_object()) {
    if (name == "__metadata__") continue;
    std::vector<int64_t> shape;
    for (const Json& extent : tensor["shape"].as_array()) shape.push_back(extent.as_int());
    for (const std::vector<int64_t>& other : other_shapes(shape)) {
      Json changed = header, one = tensor, list = Json::array();
      for (const int64_t extent : other) list.push_back(extent);
      one.set("shape", list);
      changed.set(name, one);
      const std::string text = changed.dump();
      uint64_t size = text.size();
      declared.expect_seen(
          file,
          std::string(reinterpret_cast<const char*>(&size), sizeof size) + text + bytes.substr(8 + length),
          concat(name, " as ", list.dump()));
    }
  }
  EXPECT_GT(declared.refused(), 20);
  EXPECT_EQ(declared.same(), 0);
}

TEST(Declared, ShapesOfHuggingFaceFoldersAreCompared) {
  for (const char* name : {"gpt2", "llama"}) {
    Declared declared(convert_golden(name),
                      [](const std::string& path) { return tensors_of(ModelSource(path).tensors()); });
    expect_shapes_seen(declared, "model.safetensors");
  }
}

TEST(Declared, ShapesOfAdaptersAreCompared) {
  for (const char* name : {"gpt2", "llama"}) {
    const ModelSource base(convert_golden(name));
    Declared declared(convert_golden(concat("lora_", name)), [&](const std::string& path) {
      const Adapter adapter(path);
      return tensors_of(*merge_adapter(base.tensors(), base.config(), adapter));
    });
    expect_shapes_seen(declared, "adapter_model.safetensors");
  }
}

TEST(Declared, ShapesOfOurCheckpointsAreCompared) {
  const TempDir dir;
  export_checkpoint({.source = ModelSource(convert_golden("gpt2"))}, dir / "ours");
  Declared declared(dir / "ours", [](const std::string& path) { return parameters_of(ModelSource(path)); });
  const std::string file = concat("release/", kIndexFile);
  const std::string text = read_file(declared.path() + "/" + file);
  const Index index = parse_index(text, file);
  for (size_t i = 0; i < index.tensors.size(); ++i) {
    const Shape& shape = index.tensors[i].shape;
    for (const std::vector<int64_t>& other :
         other_shapes({shape.dim.begin(), shape.dim.begin() + shape.rank})) {
      if (other.size() > shape.dim.size()) continue;
      for (const bool blocks : {false, true}) {
        Index changed = index;
        Shape declared_shape;
        declared_shape.rank = static_cast<int>(other.size());
        std::copy(other.begin(), other.end(), declared_shape.dim.begin());
        changed.tensors[i].shape = declared_shape;
        if (blocks) {
          Shape zero = declared_shape;
          std::fill(zero.dim.begin(), zero.dim.begin() + zero.rank, 0);
          changed.tensors[i].blocks[0].extent = declared_shape;
          changed.tensors[i].blocks[0].offset = zero;
        }
        declared.expect_seen(
            file, dump_index(changed),
            concat(index.tensors[i].name, " as ", declared_shape, blocks ? ", block too" : ""));
      }
    }
  }
  EXPECT_GT(declared.refused(), 100);
  EXPECT_EQ(declared.same(), 0);
}

// In a GGUF file, the number of extents and the extents follow a tensor's name, least significant byte first.
TEST(Declared, ExtentsOfGgufFilesAreCompared) {
  const TempDir dir;
  fs::create_directory(dir / "from");
  fs::copy(test::test_data("checkpoint/goldens/small.gguf"), dir / "from/small.gguf");
  Declared declared(dir / "from",
                    [](const std::string& path) { return tensors_of(GgufFile(path + "/small.gguf")); });
  const std::string bytes = read_file(dir / "from/small.gguf");
  const GgufFile sound(dir / "from/small.gguf");
  for (const StoredTensor& tensor : sound.tensors()) {
    const size_t at = bytes.find(tensor.name + std::string("\2\0\0\0", 4));
    ASSERT_NE(at, std::string::npos) << tensor.name;
    for (const size_t axis : {0, 1}) {
      const size_t place = at + tensor.name.size() + 4 + 8 * axis;
      uint64_t extent = 0;
      std::memcpy(&extent, bytes.data() + place, sizeof extent);
      for (const uint64_t other :
           {uint64_t{0}, extent + 1, extent / 2, 2 * extent, extent + 32, uint64_t{1} << 40}) {
        std::string changed = bytes;
        std::memcpy(changed.data() + place, &other, sizeof other);
        if (other != extent)
          declared.expect_seen("small.gguf", changed, concat(tensor.name, " with ", other));
      }
    }
  }
  EXPECT_GT(declared.refused(), 40);
  EXPECT_EQ(declared.same(), 0);
}

const double kNotFinite[] = {std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()};

/// Sets each number in `sound` to one that is not finite, and expects kData that names it. There must be at
/// least `wanted` numbers.
void expect_numbers_seen(const Json& sound, const std::function<void(const Json&)>& read, size_t wanted) {
  ASSERT_NO_THROW(read(sound));
  size_t numbers = 0;
  for (const auto& [key, value] : sound.as_object()) {
    if (!value.is_number()) continue;
    ++numbers;
    for (const double bad : kNotFinite) {
      Json changed = sound;
      changed.set(key, bad);
      try {
        read(changed);
        ADD_FAILURE() << key << " " << bad << " was taken";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
        EXPECT_NE(std::string(error.what()).find(key), std::string::npos) << error.what();
      }
    }
  }
  EXPECT_GE(numbers, wanted);
}

TEST(Declared, NumbersThatAreNotFiniteAreNamed) {
  const auto hf = [](const Json& json) { parse_hf_config(json, "config.json"); };
  expect_numbers_seen(Json::Object{{"model_type", "gpt2"},
                                   {"n_layer", 2},
                                   {"n_embd", 8},
                                   {"n_head", 2},
                                   {"n_positions", 16},
                                   {"vocab_size", 9},
                                   {"n_inner", 32},
                                   {"layer_norm_epsilon", 1e-5},
                                   {"attn_pdrop", 0.1},
                                   {"resid_pdrop", 0.1},
                                   {"initializer_range", 0.02}},
                      hf, 10);
  for (const char* type : {"llama", "qwen2", "mistral"})
    expect_numbers_seen(Json::Object{{"model_type", type},
                                     {"num_hidden_layers", 2},
                                     {"hidden_size", 8},
                                     {"intermediate_size", 16},
                                     {"num_attention_heads", 2},
                                     {"num_key_value_heads", 1},
                                     {"max_position_embeddings", 16},
                                     {"vocab_size", 9},
                                     {"rms_norm_eps", 1e-5},
                                     {"rope_theta", 1e4},
                                     {"attention_dropout", 0.0},
                                     {"initializer_range", 0.02}},
                        hf, 10);
  expect_numbers_seen(
      Json::Object{{"num_layers", 1},
                   {"hidden_size", 8},
                   {"num_attention_heads", 2},
                   {"ffn_hidden_size", 32},
                   {"max_position_embeddings", 16},
                   {"norm_epsilon", 1e-5},
                   {"attention_dropout", 0.1},
                   {"hidden_dropout", 0.1},
                   {"init_method_std", 0.02},
                   {"make_vocab_size_divisible_by", 128}},
      [](const Json& json) { megatron_config(json, "args"); }, 10);
  expect_numbers_seen(
      LrSchedule{}.to_json(), [](const Json& json) { LrSchedule::from_json(json, "state.json"); }, 3);
  const TempDir dir;
  fs::copy(convert_golden("lora_gpt2"), dir / "lora");
  const Json adapter = Json::load(dir / "lora/adapter_config.json");
  Json few = Json::object();
  for (const char* key : {"r", "lora_alpha"}) few.set(key, adapter[key]);
  expect_numbers_seen(
      few,
      [&](const Json& json) {
        Json whole = adapter;
        for (const auto& [key, value] : json.as_object()) whole.set(key, value);
        std::ofstream(dir / "lora/adapter_config.json") << whole.dump();
        Adapter read(dir / "lora");
      },
      2);
}

// Python writes these values into a config.json, and reads them, although JSON does not have them.
TEST(Declared, NumbersThatJsonDoesNotHaveAreNamed) {
  int tried = 0;
  for (const char* name : {"gpt2", "llama"}) {
    const TempDir dir;
    fs::copy(convert_golden(name), dir / "model");
    const std::string file = dir / "model/config.json", sound = read_file(file);
    const std::regex number("\"([a-z_]+)\": *(-?[0-9][-0-9.e]*)");
    for (auto at = std::sregex_iterator(sound.begin(), sound.end(), number); at != std::sregex_iterator();
         ++at)
      for (const std::string bad : {"NaN", "Infinity", "-Infinity", "1e999"}) {
        std::string text = sound;
        text.replace(static_cast<size_t>(at->position(2)), static_cast<size_t>(at->length(2)), bad);
        std::ofstream(file) << text;
        ++tried;
        try {
          const ModelSource source{dir / "model"};
          ADD_FAILURE() << (*at)[1] << " " << bad << " was taken";
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
          const std::string what = error.what(),
                            found = (*at)[1].str() + " is " + bad + ", wanted a finite number";
          EXPECT_TRUE(what.starts_with(file + ": ")) << what;
          EXPECT_NE(what.find(found), std::string::npos) << what;
        }
      }
  }
  EXPECT_GT(tried, 50);
}

}  // namespace
}  // namespace megalith
