#include "libcore/checkpoint/safetensors/safetensors.h"

#include <cstring>
#include <fstream>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/checkpoint/views/weights_folder.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::TempDir;

// Writes a file without the fsync of write_file().
void put(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string container(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + header + std::string(data_bytes, '\7');
}

// The message of the error (which must be kData) with which a file of these bytes is refused. Empty if the
// file is accepted.
std::string refusal(const std::string& bytes) {
  const TempDir dir;
  put(dir / "x.safetensors", bytes);
  try {
    const SafetensorsFile file(dir / "x.safetensors");
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    return error.what();
  }
}

struct Case {
  const char* what;
  std::string header;
  size_t data_bytes;
  const char* message;  // a part of the expected message; empty if the file is to be accepted
};

TEST(SafetensorsFile, AcceptsAndRefusesByTheStrictRules) {
  const std::string w = R"("w":{"dtype":"F32","shape":[4,4],"data_offsets":[0,64]})";
  const std::string deep = R"({"w":)" + std::string(100000, '[') + std::string(100000, ']') + "}";
  const std::vector<Case> cases = {
      {"one tensor", "{" + w + "}", 64, ""},
      {"an empty tensor", R"({"w":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]}})", 0, ""},
      {"a scalar", R"({"w":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})", 1, ""},
      {"spaces after the header", "{" + w + "}     ", 64, ""},
      {"metadata", R"({"__metadata__":{"format":"pt"},)" + w + "}", 64, ""},
      {"no tensor", "{}", 0, ""},
      {"zero header", "", 0, "does not begin with"},
      {"overlap", "{" + w + R"(,"v":{"dtype":"F32","shape":[4],"data_offsets":[48,64]}})", 64,
       "begins at byte 48"},
      {"two names for one range", "{" + w + R"(,"v":{"dtype":"F32","shape":[4,4],"data_offsets":[0,64]}})",
       64, "begins at byte 0"},
      {"a hole", "{" + w + R"(,"v":{"dtype":"F32","shape":[4],"data_offsets":[80,96]}})", 96,
       "begins at byte 80"},
      {"bytes after the last tensor", "{" + w + "}", 112, "the file holds 112"},
      {"cut data", "{" + w + "}", 60, "the file holds 60"},
      {"does not begin at 0", R"({"w":{"dtype":"F32","shape":[4],"data_offsets":[16,32]}})", 32,
       "begins at byte 16"},
      {"begin after end", R"({"w":{"dtype":"F32","shape":[4,4],"data_offsets":[64,0]}})", 64,
       "bytes 64 to 0"},
      {"wider type than range", R"({"w":{"dtype":"F64","shape":[4,4],"data_offsets":[0,64]}})", 64,
       "takes 128"},
      {"shape and range disagree", R"({"w":{"dtype":"F32","shape":[5,4],"data_offsets":[0,64]}})", 64,
       "takes 80"},
      {"extents wrap to 0", R"({"w":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
       "2^63"},
      {"bytes wrap to 0", R"({"w":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0,
       "2^63"},
      {"negative extent", R"({"w":{"dtype":"F32","shape":[-4,-4],"data_offsets":[0,64]}})", 64,
       "not negative"},
      {"fraction", R"({"w":{"dtype":"F32","shape":[4.0,4],"data_offsets":[0,64]}})", 64, "integers"},
      {"exponent", R"({"w":{"dtype":"F32","shape":[4,4],"data_offsets":[0,6.4e1]}})", 64, "integers"},
      {"beyond 64 bits", R"({"w":{"dtype":"F32","shape":[4,4],"data_offsets":[0,18446744073709551680]}})", 64,
       "integers"},
      {"between 63 and 64 bits",
       R"({"w":{"dtype":"F32","shape":[4,4],"data_offsets":[0,18446744073709551615]}})", 64, "integers"},
      {"a name twice", "{" + w + "," + w + "}", 64, "appears twice"},
      {"a member twice", R"({"w":{"dtype":"F32","dtype":"F32","shape":[4,4],"data_offsets":[0,64]}})", 64,
       "appears twice"},
      {"a name twice through an escape",
       "{" + w + R"(,"\u0077":{"dtype":"F32","shape":[0],"data_offsets":[64,64]}})", 64, "appears twice"},
      {"unterminated", "{" + w, 64, "JSON"},
      {"two values", "{" + w + "}{}", 64, "JSON"},
      {"an array", "[]", 0, "does not begin with"},
      {"invalid UTF-8", "{\"\xFF\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, "JSON"},
      {"100,000 deep", deep, 0, "JSON"},
      {"a leading space", " {" + w + "}", 64, "does not begin with"},
      {"unknown type", R"({"w":{"dtype":"F31","shape":[4,4],"data_offsets":[0,64]}})", 64,
       "unknown type \"F31\""},
      {"metadata that is no string", R"({"__metadata__":{"format":1},)" + w + "}", 64, "is not a string"},
      {"no offsets", R"({"w":{"dtype":"F32","shape":[4,4]}})", 64, "has no \"data_offsets\""},
      {"three offsets", R"({"w":{"dtype":"F32","shape":[4,4],"data_offsets":[0,32,64]}})", 64, "3 numbers"},
      {"an unknown member", R"({"w":{"dtype":"F32","shape":[4,4],"data_offsets":[0,64],"strides":[1,4]}})",
       64, "unknown member"},
      {"a tensor that is a number", R"({"w":5})", 0, "is not an object"},
      {"a shape that is an object", R"({"w":{"dtype":"F32","shape":{},"data_offsets":[0,64]}})", 64,
       "is not an array"},
  };
  for (const Case& c : cases) {
    const std::string message = refusal(container(c.header, c.data_bytes));
    if (*c.message)
      EXPECT_NE(message.find(c.message), std::string::npos) << c.what << ": " << message;
    else
      EXPECT_EQ(message, "") << c.what;
  }
}

TEST(SafetensorsFile, RefusesHeaderLengthsBeyondTheFile) {
  for (const uint64_t length : {uint64_t{3}, uint64_t{100'000'000}, uint64_t{1} << 63, UINT64_MAX}) {
    std::string bytes = container("{}", 0);
    std::memcpy(bytes.data(), &length, sizeof length);
    EXPECT_NE(refusal(bytes).find("declares a header"), std::string::npos) << length;
  }
  EXPECT_NE(refusal("1234567").find("7 bytes"), std::string::npos);
  EXPECT_NE(refusal("").find("0 bytes"), std::string::npos);
}

// Changes each byte of the header. Opening and reading the file must then give values or an error.
TEST(SafetensorsFile, SurvivesEveryFlippedByte) {
  const TempDir dir;
  const std::string path = dir / "x.safetensors";
  const std::string whole = container(R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", 24);
  for (size_t at = 0; at < whole.size() - 24; ++at)
    for (const int mask : {1, 4, 32, 128, 255}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ mask);
      put(path, bytes);
      try {
        const SafetensorsFile file(path);
        std::vector<float> out(64);
        for (const StoredTensor& tensor : file.tensors())
          if (tensor.dtype == DType::kF32)
            file.read(Box::whole(tensor.name, tensor.shape()), View{out.data(), DType::kF32, tensor.shape()});
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kData) << at;
      }
    }
}

TEST(SafetensorsFile, ReadsAnyBlockInAnyFloatingType) {
  const TempDir dir;
  std::vector<float> values(3 * 5 * 4);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  SafetensorsWriter writer(dir / "x.safetensors", {{"w", DType::kF32, {3, 5, 4}}});
  writer.write("w", values.data(), values.size() * sizeof(float));
  writer.finish();
  const SafetensorsFile file(dir / "x.safetensors");
  std::vector<double> out(2 * 3 * 2);
  file.read({"w", {3, 5, 4}, {1, 2, 1}}, View{out.data(), DType::kF64, {2, 3, 2}});
  size_t at = 0;
  for (int i = 1; i < 3; ++i)
    for (int j = 2; j < 5; ++j)
      for (int k = 1; k < 3; ++k) EXPECT_EQ(out[at++], i * 20 + j * 4 + k);
}

TEST(SafetensorsFile, NamesTheTensorThatDoesNotFit) {
  const TempDir dir;
  put(dir / "x.safetensors", container(R"({"weight":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}})", 2));
  const SafetensorsFile file(dir / "x.safetensors");
  float out[3];
  const auto message = [&](const char* name, Shape shape) -> std::string {
    try {
      file.read(Box::whole(name, shape), View{out, DType::kF32, shape});
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_NE(message("weigth", {2}).find(R"(no tensor "weigth"; the nearest name is "weight")"),
            std::string::npos);
  EXPECT_NE(message("weight", {3}).find("is [2], wanted [3]"), std::string::npos);
  EXPECT_NE(message("weight", {2}).find("stored as I8"), std::string::npos);
}

// The bytes that safetensors 0.8.0 writes: save_file({"b": f32[1], "a": f16[3], "c": f32[2]},
// metadata={"format": "pt"}).
TEST(SafetensorsWriter, LaysOutAsTheLibrary) {
  const TempDir dir;
  const float b[] = {1}, c[] = {2, 3};
  const uint16_t a[] = {0x3C00, 0x4000, 0x4200};
  SafetensorsWriter writer(dir / "x.safetensors",
                           {{"a", DType::kF16, {3}}, {"c", DType::kF32, {2}}, {"b", DType::kF32, {1}}});
  writer.write("b", b, 4);
  writer.write("c", c, 4);
  writer.write("c", c + 1, 4);
  writer.write("a", a, 6);
  EXPECT_FALSE(file_exists(dir / "x.safetensors"));
  writer.finish();
  std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("c":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},"a":{"dtype":"F16","shape":[3],"data_offsets":[12,18]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string bytes = container(header, 0);
  bytes += std::string("\0\0\x80\x3F\0\0\0\x40\0\0\x40\x40\0\x3C\0\x40\0\x42", 18);
  EXPECT_EQ(read_file(dir / "x.safetensors"), bytes);
}

TEST(SafetensorsWriter, RefusesBytesOutOfOrder) {
  const TempDir dir;
  SafetensorsWriter writer(dir / "x.safetensors", {{"a", DType::kF32, {2}}, {"b", DType::kF32, {1}}});
  const float values[3] = {};
  EXPECT_THROW(writer.write("b", values, 4), Error);
  EXPECT_THROW(writer.write("a", values, 12), Error);
  writer.write("a", values, 8);
  EXPECT_THROW(writer.finish(), Error);
  EXPECT_FALSE(file_exists(dir / "x.safetensors"));
}

class Folder : public testing::Test {
 protected:
  void shard(const std::string& name, const std::string& tensor) {
    put(dir_ / name, container("{\"" + tensor + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1));
  }
  void index(const std::string& map) {
    put(dir_ / "model.safetensors.index.json", R"({"weight_map":{)" + map + "}}");
  }
  std::string open() {
    try {
      const WeightsFolder folder(dir_.path().string());
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  }
  TempDir dir_;
};

TEST_F(Folder, ReadsWhatTheIndexLists) {
  shard("1.safetensors", "b");
  shard("2.safetensors", "a");
  index(R"("b":"1.safetensors","a":"2.safetensors")");
  const WeightsFolder folder(dir_.path().string());
  ASSERT_EQ(folder.tensors().size(), 2u);
  EXPECT_EQ(folder.tensors()[0].name, "a");
  uint8_t value = 0;
  folder.read(Box::whole("b", {1}), View{&value, DType::kU8, {1}});
  EXPECT_EQ(value, 7);
  // mapped() must begin at the tensor's offset in the file
  EXPECT_EQ(*folder.mapped(Box::whole("b", {1})).as<uint8_t>(), 7);
  EXPECT_FALSE(folder.mapped(Box::whole("b", {2})));
}

TEST_F(Folder, RefusesAnIndexThatDoesNotMatchTheFiles) {
  shard("1.safetensors", "b");
  shard("2.safetensors", "a");
  for (const char* file : {"../1.safetensors", "/etc/passwd", "", ".", "x/1.safetensors"}) {
    index(std::string(R"("b":")") + file + R"(","a":"2.safetensors")");
    EXPECT_NE(open().find("plain name"), std::string::npos) << file;
  }
  index(R"("b":"1.safetensors","a":"3.safetensors")");
  EXPECT_NE(open().find(R"(lists "3.safetensors", which is not in the folder)"), std::string::npos);
  index(R"("b":"1.safetensors","a":"1.safetensors")");
  EXPECT_NE(open().find(R"(tensor "a" is not in "1.safetensors")"), std::string::npos);
  index(R"("b":"1.safetensors","c":"2.safetensors")");
  EXPECT_NE(open().find(R"("a", which the index does not list)"), std::string::npos);
  index(R"("b":"2.safetensors","a":"2.safetensors")");
  EXPECT_NE(open().find("is not in"), std::string::npos);
  put(dir_ / "model.safetensors.index.json", "[]");
  EXPECT_NE(open().find("has no object"), std::string::npos);
}

}  // namespace
}  // namespace megalith
