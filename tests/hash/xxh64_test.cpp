#include "libcore/hash/xxh64.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

// `length` bytes: 0, 1, …, 250, 0, … The expected hashes below are from python-xxhash 4.1.0:
// xxhash.xxh64(bytes(i % 251 for i in range(length))).
std::string sample(size_t length) {
  std::string text(length, '\0');
  for (size_t i = 0; i < length; ++i) text[i] = static_cast<char>(i % 251);
  return text;
}

TEST(Xxh64, EqualsTheReferenceAtEveryTailLength) {
  struct Case {
    size_t length;
    const char* hex;
  };
  for (const auto& [length, hex] : {
           Case{0, "ef46db3751d8e999"},    Case{1, "e934a84adb052768"},   Case{3, "e5c7bb4533bc65dd"},
           Case{4, "ffced8604453cc1e"},    Case{5, "dd0274386e26030c"},   Case{8, "884a173614b81b8d"},
           Case{12, "424af23f1f08dca5"},   Case{15, "a948f5f0f6abac2d"},  Case{31, "c346d2b59b4d8ee1"},
           Case{32, "cbf59c5116ff32b4"},   Case{33, "0c535d1acafb8ead"},  Case{36, "dde0ef85e3aef05c"},
           Case{63, "e26aa9e2a95f8e4f"},   Case{64, "f7c67301db6713f0"},  Case{65, "c31eb63b2ae4465b"},
           Case{100, "6ac1e58032166597"},  Case{251, "0529eb87d9be6633"}, Case{1000, "f306f04aa88b54d3"},
           Case{4097, "ba236f554636de5b"},
       })
    EXPECT_EQ(hex64(xxh64(sample(length))), hex) << length;
}

// The expected hashes are from python-xxhash with seed=0x9E3779B97F4A7C15.
TEST(Xxh64, TakesASeed) {
  for (const auto& [length, hex] :
       std::initializer_list<std::pair<size_t, const char*>>{{0, "c4349fc93c010000"},
                                                             {3, "67bc6ed5f6c6e4ba"},
                                                             {31, "f3da6d05709c035d"},
                                                             {32, "a1c89217e9d50750"},
                                                             {100, "3b97d91eba03e785"}}) {
    Xxh64 hash(0x9E3779B97F4A7C15);
    hash.update(sample(length).data(), length);
    EXPECT_EQ(hex64(hash.digest()), hex) << length;
  }
}

TEST(Xxh64, DoesNotDependOnHowTheBytesArrive) {
  const std::string text = sample(1000);
  for (const size_t step : {1, 7, 31, 32, 33, 64, 999}) {
    Xxh64 hash;
    for (size_t at = 0; at < text.size(); at += step)
      hash.update(text.data() + at, std::min(step, text.size() - at));
    EXPECT_EQ(hash.digest(), xxh64(text)) << step;
  }
}

// Copies must work in mid-stream: ScratchFile::save() copies the state.
TEST(Xxh64, IsCopiedInMidStream) {
  const std::string text = sample(1000);
  for (const size_t cut : {0, 1, 31, 32, 100, 999}) {
    Xxh64 hash(7), whole(7);
    hash.update(text.data(), cut);
    Xxh64 copy = hash;
    hash.update("something else", 14);
    copy.update(text.data() + cut, text.size() - cut);
    whole.update(text.data(), text.size());
    EXPECT_EQ(copy.digest(), whole.digest()) << cut;
  }
}

// An update with a null pointer and no bytes, as for an empty file, must not pass the pointer to memcpy, even
// if bytes are buffered. A violation fails only under a sanitizer.
TEST(Xxh64, TakesNothingFromNowhere) {
  Xxh64 hash;
  hash.update("abc", 3);
  hash.update(nullptr, 0);
  EXPECT_EQ(hash.digest(), xxh64("abc"));
}

}  // namespace
}  // namespace megalith
