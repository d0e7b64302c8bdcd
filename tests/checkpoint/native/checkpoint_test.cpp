#include <cstring>
#include <fstream>
#include <list>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/checkpoint/native/writer.h"
#include "libcore/checkpoint/safetensors/safetensors.h"
#include "libcore/hash/xxh64.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::TempDir;
namespace fs = std::filesystem;

struct Tensor {
  Shape shape;
  std::vector<float> values;
  explicit Tensor(Shape s) : shape(s), values(static_cast<size_t>(s.elements())) {
    std::iota(values.begin(), values.end(), 1.F);
  }
  View view() { return {values.data(), DType::kF32, shape}; }
};

std::string message_of(const std::function<void()>& action, ErrorKind kind = ErrorKind::kData) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  return {};
}

// Writes a checkpoint with a tensor in one block, a tensor in two blocks, and small files.
void write_sample(const std::string& root, int64_t iteration) {
  Tensor whole({3, 4}), top({2, 5}), bottom({3, 5});
  CheckpointWriter writer(root, iteration);
  writer.put(Box::whole("whole", {3, 4}), whole.view());
  writer.put({"cut", {5, 5}, {0, 0}}, top.view());
  writer.put({"cut", {5, 5}, {2, 0}}, bottom.view());
  writer.put_json(kStateFile, Json::Object{{"iteration", iteration}});
  writer.put_text("tokenizer/merges.txt", "a b\n");
  writer.commit();
}

TEST(Checkpoint, ReadsBackWhatWasPut) {
  const TempDir dir;
  write_sample(dir / "save", 7);
  EXPECT_EQ(read_file(dir / "save/latest_checkpointed_iteration.txt"), "7");
  const CheckpointReader reader(dir / "save");
  EXPECT_EQ(reader.path(), dir / "save/iter_0000007");
  EXPECT_EQ(reader.iteration(), 7);
  EXPECT_EQ(reader.json(kStateFile)["iteration"].as_int(), 7);
  EXPECT_EQ(reader.text("tokenizer/merges.txt"), "a b\n");
  ASSERT_EQ(reader.tensors().size(), 2u);
  std::vector<float> out(25);
  reader.read(Box::whole("cut", {5, 5}), {out.data(), DType::kF32, {5, 5}});
  for (size_t i = 0; i < 25; ++i) EXPECT_EQ(out[i], static_cast<float>(i < 10 ? i + 1 : i - 9));
  EXPECT_NO_THROW(reader.verify());
}

TEST(Checkpoint, IsReadableAsSafetensors) {
  const TempDir dir;
  write_sample(dir / "save", 7);
  const SafetensorsFile file(dir / "save/iter_0000007/data_00000.safetensors");
  std::vector<float> out(12);
  file.read(Box::whole("whole", {3, 4}), {out.data(), DType::kF32, {3, 4}});
  EXPECT_EQ(out, Tensor({3, 4}).values);
  EXPECT_NE(file.find("cut@2,0"), nullptr);
}

// Writes tensors in blocks of various shapes, reads blocks of other shapes back, and compares them with plain
// index arithmetic.
TEST(Checkpoint, ReadsAnyBlockFromAnyPieces) {
  std::mt19937 random(5);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 20; ++round) {
    const TempDir dir;
    const Shape shape{pick(1, 7), pick(1, 6), pick(1, 5)};
    const int64_t rows = pick(1, shape[0]), columns = pick(1, shape[2]);
    CheckpointWriter writer(dir / "s", 1);
    std::list<std::vector<float>> pieces;
    for (int64_t r = 0; r < shape[0]; r += rows)
      for (int64_t c = 0; c < shape[2]; c += columns) {
        const Shape offset{r, 0, c},
            extent{std::min(rows, shape[0] - r), shape[1], std::min(columns, shape[2] - c)};
        std::vector<float>& values = pieces.emplace_back();
        for (int64_t i = 0; i < extent[0]; ++i)
          for (int64_t j = 0; j < extent[1]; ++j)
            for (int64_t k = 0; k < extent[2]; ++k)
              values.push_back(static_cast<float>((r + i) * 100 + j * 10 + c + k));
        writer.put({"t", shape, offset}, {values.data(), DType::kF32, extent});
      }
    writer.commit();
    const CheckpointReader reader(dir / "s");
    for (int block = 0; block < 10; ++block) {
      const Shape offset{pick(0, shape[0] - 1), pick(0, shape[1] - 1), pick(0, shape[2] - 1)};
      const Shape extent{pick(1, shape[0] - offset[0]), pick(1, shape[1] - offset[1]),
                         pick(1, shape[2] - offset[2])};
      std::vector<float> out(static_cast<size_t>(extent.elements()), -1);
      reader.read({"t", shape, offset}, {out.data(), DType::kF32, extent});
      size_t at = 0;
      for (int64_t i = 0; i < extent[0]; ++i)
        for (int64_t j = 0; j < extent[1]; ++j)
          for (int64_t k = 0; k < extent[2]; ++k)
            ASSERT_EQ(out[at++],
                      static_cast<float>((offset[0] + i) * 100 + (offset[1] + j) * 10 + offset[2] + k));
    }
  }
}

TEST(Checkpoint, RefusesBlocksThatDoNotCoverTheirTensor) {
  const TempDir dir;
  Tensor part({2, 5});
  const auto save = [&](std::vector<Shape> offsets) {
    return message_of(
        [&] {
          CheckpointWriter writer(dir / "save", 1);
          for (const Shape& offset : offsets) writer.put({"cut", {4, 5}, offset}, part.view());
          writer.commit();
        },
        ErrorKind::kInternal);
  };
  EXPECT_NE(save({{0, 0}}).find("cover 10 of 20"), std::string::npos);
  EXPECT_NE(save({{0, 0}, {1, 0}}).find("overlap"), std::string::npos);
  EXPECT_NE(save({{0, 0}, {0, 0}}).find("put twice"), std::string::npos);
  EXPECT_NE(save({{0, 0}, {3, 0}}).find("does not lie"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(dir.path() / "save"));
  EXPECT_EQ(save({{0, 0}, {2, 0}}), "");
}

TEST(Checkpoint, ReplacesOneOfTheSameIterationAndClearsLeftovers) {
  const TempDir dir;
  write_sample(dir / "save", 7);
  write_file(dir / "save/iter_0000007/stranger", "x");
  fs::create_directories(dir / "save/.iter_0000003.tmp/tokenizer");
  write_sample(dir / "save", 7);
  EXPECT_FALSE(file_exists(dir / "save/iter_0000007/stranger"));
  EXPECT_FALSE(file_exists(dir / "save/.iter_0000003.tmp"));
  EXPECT_NO_THROW(CheckpointReader(dir / "save").verify());
}

TEST(Checkpoint, FollowsTheTracker) {
  const TempDir dir;
  EXPECT_FALSE(latest_checkpoint(dir / "nowhere"));
  EXPECT_FALSE(latest_checkpoint(dir.path().string()));
  write_sample(dir / "save", 7);
  write_sample(dir / "save", 12);
  EXPECT_EQ(latest_checkpoint(dir / "save"), dir / "save/iter_0000012");
  EXPECT_EQ(CheckpointReader(dir / "save/iter_0000007").iteration(), 7);
  write_sample(dir / "save", kRelease);
  EXPECT_EQ(latest_checkpoint(dir / "save"), dir / "save/release");
  EXPECT_EQ(CheckpointReader(dir / "save").iteration(), kRelease);
  for (const char* evil : {"../../etc", "", "-3", "7.0", "release2", "99999999999999999999"}) {
    write_file(dir / "save/latest_checkpointed_iteration.txt", evil);
    EXPECT_NE(message_of([&] { latest_checkpoint(dir / "save"); }).find("wanted an iteration"),
              std::string::npos)
        << evil;
  }
  write_file(dir / "save/latest_checkpointed_iteration.txt", "8\n");
  EXPECT_NE(message_of([&] { CheckpointReader(dir / "save"); }).find("holds no checkpoint"),
            std::string::npos);
  message_of([&] { CheckpointReader(dir / "nowhere"); }, ErrorKind::kNoInput);
}

// Flips each byte of each file. The reader must either refuse the checkpoint and name the file, or return the
// right values. It returns the right values if the byte is in a safetensors header, which it does not use.
TEST(Checkpoint, NoticesEveryFlippedByte) {
  const TempDir dir;
  write_sample(dir / "save", 7);
  const std::string folder = dir / "save/iter_0000007";
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().filename().string(), whole = read_file(entry.path().string());
    const size_t header =
        name.ends_with(".safetensors") ? 8 + whole.find('}', whole.rfind("data_offsets")) : 0;
    for (size_t at = header + (header > 0 ? 8 : 0); at < whole.size(); ++at) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ 1);
      std::ofstream(entry.path(), std::ios::binary) << bytes;
      const std::string message = message_of([&] { CheckpointReader(folder).verify(); });
      EXPECT_NE(message.find(name), std::string::npos) << name << " at " << at << ": " << message;
    }
    std::ofstream(entry.path(), std::ios::binary) << whole;
  }
}

TEST(Checkpoint, NoticesTruncatedAndMissingFiles) {
  const TempDir dir;
  write_sample(dir / "save", 7);
  const std::string folder = dir / "save/iter_0000007";
  for (const char* name : {"index.json", "data_00000.safetensors", "state.json", "tokenizer/merges.txt"}) {
    const std::string path = folder + "/" + name, whole = read_file(path);
    for (const size_t kept : {size_t{0}, whole.size() / 2, whole.size() - 1}) {
      std::ofstream(path, std::ios::binary) << whole.substr(0, kept);
      EXPECT_NE(message_of([&] { CheckpointReader(folder).verify(); }).find(name), std::string::npos)
          << name << " " << kept;
    }
    fs::remove(path);
    EXPECT_NE(message_of([&] { CheckpointReader(folder).verify(); }, ErrorKind::kNoInput), "") << name;
    std::ofstream(path, std::ios::binary) << whole;
  }
}

// An index that an earlier version wrote.
TEST(Checkpoint, IndexHasTheBytesOfEarlierVersions) {
  const std::string text = R"({
 "format": "megalith-checkpoint",
 "version": 1,
 "iteration": 7,
 "files": [
  {
   "name": "state.json",
   "bytes": 12,
   "xxh64": "0000000000000010"
  }
 ],
 "tensors": [
  {
   "name": "b",
   "dtype": "bf16",
   "shape": [
    2,
    3
   ],
   "pieces": [
    {
     "offset": [
      0,
      0
     ],
     "shape": [
      1,
      3
     ],
     "file": "data_00000.safetensors",
     "begin": 8,
     "end": 14,
     "xxh64": "00000000000000ff"
    },
    {
     "offset": [
      1,
      0
     ],
     "shape": [
      1,
      3
     ],
     "file": "data_00001.safetensors",
     "begin": 8,
     "end": 14,
     "xxh64": "0123456789abcdef"
    }
   ]
  },
  {
   "name": "w",
   "dtype": "fp32",
   "shape": [
    1
   ],
   "pieces": [
    {
     "offset": [
      0
     ],
     "shape": [
      1
     ],
     "file": "data_00001.safetensors",
     "begin": 14,
     "end": 18,
     "xxh64": "0000000000000001"
    }
   ]
  }
 ],
 "checksum": "4a0e82114165695a"
})";
  const Index index = parse_index(text, "index");
  EXPECT_EQ(index.iteration, 7);
  EXPECT_EQ(index.files.at(0).checksum, 16U);
  ASSERT_EQ(index.tensors.size(), 2U);
  EXPECT_EQ(index.tensors[0].dtype, DType::kBf16);
  EXPECT_EQ(index.tensors[0].shape, (Shape{2, 3}));
  EXPECT_EQ(index.tensors[0].blocks.at(1).offset, (Shape{1, 0}));
  EXPECT_EQ(index.tensors[0].blocks.at(1).checksum, 0x0123456789abcdefU);
  EXPECT_EQ(index.tensors[1].blocks.at(0).end, 18U);
  EXPECT_EQ(dump_index(index), text);
}

// The index has a correct checksum but makes impossible claims.
TEST(Checkpoint, RefusesAnIndexThatContradictsItself) {
  const TempDir dir;
  write_sample(dir / "save", 7);
  const std::string path = dir / "save/iter_0000007/index.json", whole = read_file(path);
  const auto refusal = [&](std::string from, const std::string& to) {
    std::string text = whole;
    for (const char c : {' ', '\n'}) from.erase(std::remove(from.begin(), from.end(), c), from.end());
    Json json = Json::parse(text, "index");
    std::string flat = json.dump();
    flat.erase(std::remove(flat.begin(), flat.end(), ' '), flat.end());
    const size_t at = flat.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    flat.replace(at, from.size(), to);
    flat.resize(flat.find(",\"checksum\""));
    flat += ",\n \"checksum\": \"" + hex64(xxh64(flat)) + "\"\n}";
    std::ofstream(path, std::ios::binary) << flat;
    return message_of([&] { CheckpointReader(dir / "save").verify(); });
  };
  EXPECT_NE(refusal("\"shape\":[3,4]", "\"shape\":[3,5]").find("cover 12 of 15"), std::string::npos);
  EXPECT_NE(refusal("\"offset\":[2,0]", "\"offset\":[1,0]").find("overlap"), std::string::npos);
  EXPECT_NE(refusal("\"offset\":[2,0]", "\"offset\":[3,0]").find("does not lie"), std::string::npos);
  EXPECT_NE(refusal("\"offset\":[2,0]", "\"offset\":[-2,0]").find("holds -2"), std::string::npos);
  EXPECT_NE(refusal("\"shape\":[5,5]", "\"shape\":[4611686018427387904,5]").find("2^63"), std::string::npos);
  EXPECT_NE(refusal("\"shape\":[5,5]", "\"shape\":[1,1,1,1,5,5]").find("6 axes"), std::string::npos);
  EXPECT_NE(refusal("\"file\":\"data_00000.safetensors\"", "\"file\":\"../x\"").find("plain name"),
            std::string::npos);
  EXPECT_NE(
      refusal("\"name\":\"state.json\"", "\"name\":\"../../state.json\"").find("in the checkpoint's folder"),
      std::string::npos);
  EXPECT_NE(refusal("\"dtype\":\"fp32\"", "\"dtype\":\"fp31\"").find("unknown type"), std::string::npos);
  EXPECT_NE(refusal("\"version\":1", "\"version\":2").find("version 2"), std::string::npos);
  EXPECT_NE(refusal("\"name\":\"cut\"", "\"name\":\"whole\"").find("not sorted"), std::string::npos);
  EXPECT_EQ(refusal("\"version\":1", "\"version\":1"), "");
}

}  // namespace
}  // namespace megalith
