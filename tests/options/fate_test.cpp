#include "libcore/options/fate.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

std::string_view found(const std::vector<OptionFate>& fates, std::string_view name) {
  const OptionFate* const fate = find_fate(fates, name);
  return fate ? fate->name : "none";
}

TEST(OptionFate, OfTheLongestNameThatFitsCounts) {
  const std::vector<OptionFate> fates = {
      {.name = "moe-*"}, {.name = "moe-router-*"}, {.name = "moe-router-dtype"}};
  EXPECT_EQ(found(fates, "moe-router-dtype"), "moe-router-dtype");
  EXPECT_EQ(found(fates, "moe-router-fusion"), "moe-router-*");
  EXPECT_EQ(found(fates, "moe-routing"), "moe-*");
  EXPECT_EQ(found(fates, "moe"), "none");
  EXPECT_EQ(found(fates, "a-moe-router-dtype"), "none");
}

TEST(OptionFate, OfAFlagIsThatOfItsNegation) {
  const std::vector<OptionFate> fates = {{.name = "fusion", .values = OptionFate::kMaybeOne},
                                         {.name = "profile"}};
  EXPECT_EQ(found(fates, "no-fusion"), "fusion");
  EXPECT_EQ(found(fates, "no-profile"), "none");
}

TEST(OptionFate, RefusesAllButPlainValues) {
  constexpr OptionFate kFlag = {.name = "offload", .remedy = "leave it out"};
  constexpr OptionFate kKind = {.name = "kind", .remedy = "give p2p", .plain = "p2p|ring"};
  constexpr OptionFate kOn = {.name = "wgrad", .remedy = "leave it out", .plain = "true"};
  const auto refused = [](const OptionFate& fate, const std::vector<std::string>& words) {
    return refuses(fate, words);
  };
  EXPECT_TRUE(refused(kFlag, {}));
  EXPECT_TRUE(refused(kFlag, {"true"}));
  EXPECT_FALSE(refused(kFlag, {"False"}));
  EXPECT_FALSE(refused(kFlag, {"no"}));
  EXPECT_FALSE(refused(kKind, {"P2P"}));
  EXPECT_FALSE(refused(kKind, {"ring"}));
  EXPECT_TRUE(refused(kKind, {"p2p", "ring"}));
  EXPECT_TRUE(refused(kKind, {"false"}));
  EXPECT_FALSE(refused(kOn, {"1"}));
  EXPECT_FALSE(refused(kOn, {})) << "a flag without a word is true";
  EXPECT_TRUE(refused(kOn, {"false"}));
  EXPECT_FALSE(refused({.name = "ignored"}, {"anything"}));
}

TEST(OptionFate, IsLiftedByTheRun) {
  constexpr OptionFate kOfExperts = {.name = "moe-*", .remedy = "leave it out", .only = "experts"};
  constexpr OptionFate kAgain = {.name = "encoder-layers", .remedy = "give --layers", .repeats = "layers"};
  const auto lifted_in = [](const OptionFate& fate, const std::vector<std::string>& words, bool experts,
                            const std::string& layers) {
    return lifted(fate, words,
                  {.is = [&](std::string_view kind) { return kind == "experts" && experts; },
                   .value_of = [&](std::string_view option) { return option == "layers" ? layers : ""; }});
  };
  EXPECT_TRUE(lifted_in(kOfExperts, {"2"}, false, ""));
  EXPECT_FALSE(lifted_in(kOfExperts, {"2"}, true, ""));
  EXPECT_TRUE(lifted_in(kAgain, {"48"}, true, "48"));
  EXPECT_FALSE(lifted_in(kAgain, {"48"}, true, "24"));
  EXPECT_FALSE(lifted_in(kAgain, {}, true, "")) << "neither was given";
  EXPECT_FALSE(lifted(kOfExperts, std::vector<std::string>{}, {})) << "without facts the run is of all kinds";
  EXPECT_FALSE(kAgain.conditional() && !kOfExperts.conditional());
}

}  // namespace
}  // namespace megalith
