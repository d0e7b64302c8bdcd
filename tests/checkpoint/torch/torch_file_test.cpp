#include "libcore/checkpoint/torch/torch_file.h"

#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/checkpoint/torch/zip_archive.h"
#include "tests/support/files.h"
#include "tests/support/torch_bytes.h"

namespace megalith {
namespace {

using namespace test;  // for the functions that build the bytes of a file
const PickledTensor kSquare{.extents = {4, 4}, .strides = {4, 1}};

std::string with_tensor(const PickledTensor& t) {
  return pickled_dict({{"w", tensor(t)}});
}

class TorchFileTest : public testing::Test {
 protected:
  std::string put(const std::string& bytes) const {
    std::ofstream(dir_ / "x.pt", std::ios::binary) << bytes;
    return dir_ / "x.pt";
  }
  // The values of tensor "w". Throws if the file is refused.
  std::vector<float> read(const std::string& bytes, CrcCheck check = CrcCheck::kYes) const {
    const TorchTensorFile file(open_torch(put(bytes), check));
    const Shape shape = file.at("w").shape();
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    file.read(Box::whole("w", shape), {values.data(), DType::kF32, shape});
    return values;
  }
  std::string refusal(const std::string& bytes) const {
    try {
      read(bytes);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      return error.what();
    }
    return "nothing";
  }
  void expect_refusal(const std::string& bytes, const std::string& part) const {
    const std::string said = refusal(bytes);
    EXPECT_NE(said.find(part), std::string::npos) << said;
  }
  void expect_pickle_refusal(const std::string& body, const std::string& part) const {
    expect_refusal(torch_zip(body), part);
  }
  const TempDir dir_;
};

TEST_F(TorchFileTest, GivesTensorsOfAnyStride) {
  EXPECT_EQ(read(torch_zip(with_tensor(kSquare)))[5], 5);
  const std::vector<float> turned = read(torch_zip(with_tensor({.extents = {4, 4}, .strides = {1, 4}})));
  for (size_t i = 0; i < 16; ++i) {
    const size_t row = i / 4, column = i % 4;
    EXPECT_EQ(turned[i], static_cast<float>(column * 4 + row));
  }
  EXPECT_EQ(read(torch_zip(with_tensor({.extents = {2, 5}, .strides = {1, 0}, .offset = 3}))),
            (std::vector<float>{3, 3, 3, 3, 3, 4, 4, 4, 4, 4}));
  EXPECT_EQ(read(torch_zip(with_tensor({.extents = {}, .strides = {}, .offset = 7}))), std::vector<float>{7});
  EXPECT_TRUE(read(torch_zip(with_tensor({.extents = {0, 3}, .strides = {3, 1}}))).empty());
}

TEST_F(TorchFileTest, ReadsBlocksOfATurnedTensor) {
  const TorchTensorFile file(open_torch(put(torch_zip(with_tensor({.extents = {4, 4}, .strides = {1, 4}})))));
  std::vector<float> block(4);
  file.read({"w", {4, 4}, {1, 2}}, {block.data(), DType::kF32, {2, 2}});
  EXPECT_EQ(block, (std::vector<float>{9, 13, 10, 14}));
}

TEST_F(TorchFileTest, ReadsZip64AndDataDescriptors) {
  std::vector<ZipMember> members = torch_members(with_tensor(kSquare));
  EXPECT_EQ(read(zip_of(members, true))[15], 15);
  for (ZipMember& member : members) member.flags = 8;
  EXPECT_EQ(read(zip_of(members))[15], 15);
}

TEST_F(TorchFileTest, ComparesChecksumsUnlessToldNotTo) {
  std::vector<ZipMember> members = torch_members(with_tensor(kSquare));
  members[2].crc_error = 1;
  expect_refusal(zip_of(members), "do not match their CRC");
  EXPECT_EQ(read(zip_of(members), CrcCheck::kNo)[3], 3);
  members = torch_members(with_tensor(kSquare));
  members[0].crc_error = 1;
  expect_refusal(zip_of(members), "does not match its CRC");
}

TEST_F(TorchFileTest, RefusesArchivesThatAreNotSound) {
  const auto members = torch_members(with_tensor(kSquare));
  const auto changed = [&](const auto& change) {
    auto copy = members;
    change(copy);
    return zip_of(copy);
  };
  expect_refusal(changed([](auto& m) { m[1].method = 8; }), "is compressed");
  expect_refusal(changed([](auto& m) { m[1].directory_size = 5; }), "is said to take 5");
  expect_refusal(changed([](auto& m) { m[1].local = 3; }), "should begin at byte");
  expect_refusal(changed([](auto& m) { m[1].flags = 1; }), "encrypted");
  expect_refusal(changed([](auto& m) { m.push_back(m[0]); }), "twice");
  expect_refusal(changed([](auto& m) { m.push_back({.name = "b/data.pkl", .bytes = "x"}); }),
                 "2 files data.pkl");
  expect_refusal(changed([](auto& m) { m.erase(m.begin()); }), "0 files data.pkl");
  for (const char* name : {"../x", "/x", "a/../x", "a//x", "a\\x", ""})
    expect_refusal(changed([&](auto& m) { m.push_back({.name = name, .bytes = "x"}); }),
                   "leads out of its folder");
  expect_refusal(changed([](auto& m) { m[1].bytes = "big"; }), "byte order is \"big\"");
  expect_refusal(changed([](auto& m) { m.push_back({.name = "a/constants.pkl", .bytes = "x"}); }),
                 "TorchScript");
  expect_refusal(changed([](auto& m) { m[2].bytes.resize(40); }), "storage \"0\" has 40 bytes");
  std::string count = zip_of(members);
  // the number of entries on all disks and on this one
  count[count.size() - 12] = count[count.size() - 14] = 5;
  expect_refusal(count, "the zip directory has no entry");
}

// Changes the disk numbers in the end record and in each entry.
TEST_F(TorchFileTest, RefusesArchivesOfSeveralDisks) {
  for (const bool zip64 : {false, true}) {
    const std::string good = zip_of(torch_members(with_tensor(kSquare)), zip64);
    EXPECT_EQ(refusal(good), "nothing");
    const size_t end = good.rfind("PK\x05\x06"), entry = good.find("PK\x01\x02");
    std::vector<size_t> places = {entry + 34};
    if (zip64)
      for (const size_t at : {56 - 40 + size_t{0}, size_t{20}, size_t{24}})
        places.push_back(good.rfind("PK\x06\x06") + at);
    else
      for (const size_t at : {4, 6, 8}) places.push_back(end + at);
    for (const size_t place : places) {
      std::string bad = good;
      ++bad[place];
      expect_refusal(bad, "several disks");
    }
  }
}

TEST_F(TorchFileTest, RefusesNamesThatDifferByCaseAlone) {
  auto members = torch_members(with_tensor(kSquare));
  members.push_back({.name = members[2].name, .bytes = "x"});
  for (char& c : members.back().name) c = static_cast<char>(std::toupper(c));
  expect_refusal(zip_of(members), "differ by case only");
  members.back().name = std::string(60'000, 'n') + "/../x";
  EXPECT_LT(refusal(zip_of(members)).size(), 1000U);
}

// Cuts the file at each byte and changes each byte. The file must then be refused or give its own values,
// never others.
TEST_F(TorchFileTest, SurvivesEveryTruncationAndFlip) {
  const std::string whole = torch_zip(with_tensor(kSquare));
  const std::vector<float> values = read(whole);
  for (size_t n = 0; n < whole.size(); n += 3) EXPECT_NE(refusal(whole.substr(0, n)), "nothing") << n;
  for (size_t at = 0; at < whole.size(); at += 2)
    for (const char mask : {'\x01', '\x80'}) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ mask);
      try {
        EXPECT_EQ(read(flipped), values) << at;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
      }
    }
}

TEST_F(TorchFileTest, NamesOtherFiles) {
  expect_refusal("", "is empty");
  expect_refusal("version https://git-lfs.github.com/spec/v1\n", "git-lfs pointer");
  std::string tar(512, '\0');
  tar.replace(257, 5, "ustar");
  expect_refusal(tar, "tar archive");
  expect_refusal("GGUF....", "GGUF");
  expect_refusal("hello", "is not a file of torch.save");
}

TEST_F(TorchFileTest, RefusesTensorsThatDoNotLieInTheirStorage) {
  const auto expect = [&](const PickledTensor& t, const char* part) {
    expect_refusal(torch_zip(with_tensor(t)), part);
  };
  const int64_t huge = int64_t{1} << 62;
  expect({.extents = {4, 4}, .strides = {5, 1}}, "ends at element 18");
  expect({.extents = {4}, .strides = {1}, .offset = 13}, "ends at element 16");
  expect({.extents = {4}, .strides = {-1}}, "strides of a tensor hold -1");
  expect({.extents = {4}, .strides = {1}, .offset = -1}, "begins at element -1");
  expect({.extents = {-4, -4}, .strides = {4, 1}}, "extents of a tensor hold -4");
  expect({.extents = {4, 4}, .strides = {4}}, "2 extents and 1 strides");
  expect({.extents = {huge, 4}, .strides = {0, 0}}, "more than 2^63");
  expect({.extents = {3}, .strides = {huge}}, "more than 2^63");
  expect({.extents = {1 << 20, 1 << 14}, .strides = {0, 0}}, "4 times the bytes");
  expect({.extents = {4}, .strides = {1}, .elements = huge}, "storage \"0\" has 64 bytes");
  expect({.extents = {4}, .strides = {1}, .key = "7"}, "no storage \"7\"");
  expect({.extents = {4}, .strides = {1}, .key = "../../etc/passwd"}, "no storage");
  expect({.extents = {4}, .strides = {1}, .type = "DoubleStorage"}, "16 elements of F64");
  expect({.extents = {4}, .strides = {1}, .type = "QInt8Storage"}, "torch.QInt8Storage");
}

TEST_F(TorchFileTest, NamesWhatCouldRunCodeAndWhere) {
  const std::string call = text("echo") + "\x85R";
  for (const char* name : {"os\nsystem", "posix\nsystem", "builtins\neval", "__builtin__\nexec",
                           "subprocess\nPopen", "builtins\ngetattr", "torch\nload", "megatron.x\nos.system",
                           "megatron.core.utils\nrun", "megatronx.y\nClass", "numpy\nload"}) {
    const std::string split = name;
    const size_t at = split.find('\n');
    const std::string said =
        refusal(torch_zip(pickled_dict({{"w", global(split.substr(0, at), split.substr(at + 1)) + call}})));
    EXPECT_NE(said.find("pickle byte 10: names \"" + split.substr(0, at) + "." + split.substr(at + 1)),
              std::string::npos)
        << said;
  }
  expect_pickle_refusal("\x80\x04" + text("os") + text("system") + "\x93.", "os.system");
  // Hides the forbidden call next to an intact model.
  const std::string args =
      global("argparse", "Namespace") + ")\x81}" + text("x") + global("os", "system") + call + "sb";
  expect_pickle_refusal(pickled_dict({{"w", tensor(kSquare)}, {"args", args}}), "os.system");
  expect_pickle_refusal(
      "\x80\x02" + global("argparse", "Namespace") + ")\x81}" + text("__class__") + "K\x01sb.",
      "BUILD sets \"__class__\"");
  for (const auto& [op, name] :
       {std::pair{"(ios\nsystem\n", "INST"}, {"\x82\x01", "EXT1"}, {"Px\n", "PERSID"}, {"o", "OBJ"}})
    expect_pickle_refusal("\x80\x02" + std::string(op) + ".", name);
  expect_pickle_refusal("\x80\x02" + global("torch", "FloatStorage") + ")R.", "may only be named");
}

TEST_F(TorchFileTest, RefusesPicklesThatAreNotSound) {
  const auto expect = [&](const std::string& body, const char* part) { expect_pickle_refusal(body, part); };
  expect("\x80\x09N.", "protocol 9");
  expect("\x80\x02\xff.", "unknown opcode 255");
  expect("\x80\x02N", "damaged or truncated");
  expect("\x80\x02.", "STOP leaves 0 values");
  expect(
      "\x80\x02"
      "0.",
      "empty stack");
  expect("\x80\x02t.", "needs a MARK");
  expect("\x80\x02h\x07.", "memo slot 7");
  expect("\x80\x02X" + u32(0xFFFFFFF0) + "a.", "damaged or truncated");
  expect("\x80\x02\x8d" + u64(uint64_t{1} << 63) + "a.", "damaged or truncated");
  expect("\x80\x04\x95" + u64(uint64_t{1} << 62) + "N.", "a frame of");
  expect("\x80\x02]q" + u8(0) + "h" + u8(0) + "a.", "contains itself");
  expect("\x80\x02" + std::string(200000, ']') + std::string(199999, 'a') + ".", "nested deeper");
  expect("\x80\x02N.x", "ends at byte");
  expect("\x80\x02}K\x01s.", "empty stack");
  expect(
      "\x80\x02NK\x01"
      "a.",
      "other than a list");
}

// In each of these, two parts contradict each other. Python would take one of them, refuse the pickle, or
// produce other bytes.
TEST_F(TorchFileTest, RefusesPicklesThatContradictThemselves) {
  const auto dict = [](const std::string& items) { return "\x80\x02}(" + items + "u."; };
  expect_pickle_refusal(dict(text("a") + "N" + text("b") + "N" + text("a") + "K\x01"), "the key \"a\" twice");
  expect_pickle_refusal(dict(whole(7) + "N" + whole(7) + "N"), "the key 7 twice");
  for (const std::string& key : {std::string("]"), std::string("}"), "]" + std::string("\x85"),
                                 "]\x85" + std::string("\x85"), global("argparse", "Namespace") + ")\x81"})
    expect_pickle_refusal(dict(key + "N"), "cannot hash");
  for (const std::string& bad : {std::string("\xff"), std::string("a\xc3"), std::string("\xed\xa0\x80")}) {
    expect_pickle_refusal("\x80\x02" + text(bad) + ".", "not valid UTF-8");
    expect_pickle_refusal("\x80\x02U" + u8(static_cast<int>(bad.size())) + bad + ".", "not valid UTF-8");
    expect_pickle_refusal(dict(text(bad) + "N"), "not valid UTF-8");
  }
  const auto encoded = [](const std::string& arguments) {
    return "\x80\x02" + global("_codecs", "encode") + arguments + "R.";
  };
  for (const char* const codec : {"utf-8", "utf-7", "zip", "rot13", "unicode_escape", ""})
    expect_pickle_refusal(encoded(tuple({text("abc"), text(codec)})), "\"latin1\"");
  expect_pickle_refusal(encoded(tuple({text("abc")})), "\"latin1\"");
  expect_pickle_refusal(encoded(tuple({text("abc"), text("latin1")})), "no tensor");  // the encoding is valid
}

// Reads small files that would cost a careless reader far more work than their size suggests.
TEST_F(TorchFileTest, DoesNotDoMoreWorkThanTheFileIsLong) {
  const auto start = std::chrono::steady_clock::now();
  expect_pickle_refusal("\x80\x02}r" + u32(0xFFFFFFFF) + ".", "no tensor");
  // Lists that each hold the previous list twice: 2^60 leaves.
  std::string bomb = "\x80\x02]q" + u8(0);
  for (int level = 1; level <= 60; ++level)
    bomb += "](h" + u8(level - 1) + "h" + u8(level - 1) + "eq" + u8(level) + "0h" + u8(level);
  EXPECT_NE(refusal(torch_zip(bomb + ".")), "nothing");
  // One dict as the state of very many objects.
  std::string state = "\x80\x02}(";
  for (int i = 0; i < 3000; ++i) state += text("k") + "N";
  state += "uq" + u8(0) + "0](";
  for (int i = 0; i < 3000; ++i) state += global("types", "SimpleNamespace") + ")\x81h" + u8(0) + "b";
  expect_pickle_refusal(state + "e.", "over and over");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST_F(TorchFileTest, KeepsWhatItDoesNotUnderstandAsItIs) {
  const std::string odd =
      pickled_dict({{"__proto__", "}"},
                    {"w", tensor(kSquare)},
                    {"enum", global("megatron.core.enums", "ModelType") + "K\x01\x85R"},
                    {"none", "N"},
                    {"numpy", global("numpy.core.multiarray", "_reconstruct") +
                                  tuple({global("numpy", "ndarray"), wholes({0}),
                                         "C\x01"
                                         "b"}) +
                                  'R'},
                    {"big", "\x8a\x09" + std::string(8, '\0') + "\x40"},
                    {"args", global("argparse", "Namespace") + ")\x81}" + text("layers") + "K\x05sb"}});
  const TorchFile file = open_torch(put(torch_zip(odd)));
  const PickleTree& tree = file.tree;
  EXPECT_EQ(tree.class_name(*tree.find_ref(tree.root(), "enum")), "megatron.core.enums.ModelType");
  EXPECT_EQ(tree.find(*tree.find_ref(tree.root(), "args"), "layers")->whole(), 5);
  EXPECT_EQ(tree.find(tree.root(), "big")->kind, PickleValue::Kind::kLongInt);
  EXPECT_EQ(tree.find(tree.root(), "nothing"), nullptr);
  EXPECT_EQ(TorchTensorFile(file).tensors().size(), 1U);
}

TEST_F(TorchFileTest, ReadsTheStreamOfBeforeTorch16) {
  const std::string magic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
  const std::string front = magic + "\x80\x02M\xe9\x03.";
  const std::string system = pickled_dict({{"little_endian", "\x88"}});
  const std::string storage = torch_members("")[2].bytes;
  const std::string keys = "\x80\x02](" + text("0") + "e.";
  const std::string sound = front + system + with_tensor(kSquare) + keys + u64(16) + storage;
  EXPECT_EQ(read(sound)[9], 9);
  for (size_t n = 0; n < sound.size(); n += 5) EXPECT_NE(refusal(sound.substr(0, n)), "nothing") << n;
  expect_refusal(
      front + pickled_dict({{"little_endian", "\x89"}}) + sound.substr(front.size() + system.size()),
      "little-endian");
  expect_refusal(front + system + pickled_dict({{"w", global("os", "system") + ")R"}}) + keys, "os.system");
  expect_refusal(front + system + with_tensor(kSquare) + keys + u64(uint64_t{1} << 60) + storage,
                 "past the end");
  expect_refusal(front + system + with_tensor(kSquare) + keys + u64(15) + storage, "has 60 bytes");
  expect_refusal(front + system + with_tensor(kSquare) + "\x80\x02].", "has no storage");
}

}  // namespace
}  // namespace megalith
