#include "libcore/config/checkpoint_format.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

// The source files of the stores register the formats in any order; --help lists them in the order of their
// places.
TEST(CheckpointFormats, AreListedInTheOrderOfTheirPlaces) {
  std::vector<std::string> words;
  for (const auto& [word, format] : enum_names(CheckpointFormat{})) {
    words.emplace_back(word);
    EXPECT_EQ(checkpoint_format(word), format);
  }
  EXPECT_EQ(words, (std::vector<std::string>{"megalith", "torch", "torch_dist", "pth", "fsdp_dtensor"}));
  EXPECT_EQ(checkpoint_format("megalith"), CheckpointFormat{}) << "the default";
}

TEST(CheckpointFormats, HaveWordsAndPlacesOfTheirOwn) {
  EXPECT_THROW(add_checkpoint_format(100, "torch", {}), Error);
  EXPECT_THROW(add_checkpoint_format(1, "another", {}), Error);
  EXPECT_THROW(checkpoint_format("another"), Error);
}

// With --use-dist-ckpt our own format and torch_dist are written as torch_dist. All other formats contradict
// the option.
TEST(CheckpointFormats, SayWhatUseDistCkptMakesOfThem) {
  for (const char* const word : {"megalith", "torch_dist"})
    EXPECT_EQ(std::string(traits_of(checkpoint_format(word)).with_dist), "torch_dist");
  for (const char* const word : {"torch", "pth", "fsdp_dtensor"})
    EXPECT_EQ(traits_of(checkpoint_format(word)).with_dist, nullptr) << word;
}

}  // namespace
}  // namespace megalith
