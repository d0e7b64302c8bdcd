#include "libcore/dialects/megatron/fates.h"

#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "libcore/config/launch_config.h"
#include "libcore/config/pretrain_config.h"
#include "libcore/options/command_line.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

constexpr Program kPrograms[] = {kPretrain, kFinetune, kAutoplan, kPreprocess, kMerge, kLog};

TEST(Fates, AreOneForAProgramAndAName) {
  for (const Program program : kPrograms) {
    std::set<std::string_view> names;
    for (const ForeignOption& option : foreign_options()) {
      EXPECT_NE(option.programs, 0U) << option.name;
      EXPECT_FALSE(option.name.empty());
      if ((option.programs & program) != 0) {
        EXPECT_TRUE(names.insert(option.name).second)
            << option.name << " is listed twice for program " << program;
      }
    }
    EXPECT_EQ(names.size(), fates_in(program).size());
  }
  std::set<std::string_view> logged;
  for (const ForeignOption& option : foreign_options()) {
    if ((option.programs & (kAutoplan | kLog)) != 0) {
      EXPECT_TRUE(logged.insert(option.name).second) << option.name << " has two fates in a log";
    }
  }
}

TEST(Fates, NameKindsOfRunsThatThereAre) {
  const RunKind all = {.context = true, .experts = true, .narrow = true, .interleaved = true}, none;
  for (const ForeignOption& option : foreign_options()) {
    EXPECT_TRUE(option.only.empty() || all.has(option.only)) << option.name;
    EXPECT_FALSE(none.has(option.only)) << option.name;
    EXPECT_TRUE(option.only.empty() || (option.programs & ~(kAutoplan | kLog)) == 0) << option.name;
  }
}

// An ignored name may match a refused pattern, as --moe-grouped-gemm matches --moe-*. The longer name
// decides.
TEST(Fates, OfAFamilyGiveWayToALongerName) {
  const std::vector<OptionFate> plans = fates_in(kAutoplan), runs = fates_in(kPretrain);
  for (const char* name :
       {"moe-apply-probs-on-input", "moe-deepep-num-sms", "moe-grouped-gemm", "moe-per-layer-logging",
        "moe-permute-fusion", "moe-router-bias-update-rate", "moe-router-dtype", "moe-router-fusion",
        "moe-router-padding-for-fp8", "moe-router-pre-softmax", "moe-router-topk-scaling-factor",
        "moe-token-drop-policy", "moe-z-loss-coeff", "mtp-loss-scaling-factor", "rotary-scaling-factor"}) {
    const OptionFate *planned = find_fate(plans, name), *run = find_fate(runs, name);
    ASSERT_TRUE(planned && run) << name;
    EXPECT_TRUE(planned->remedy.empty()) << name << " changes nothing of a plan";
    EXPECT_FALSE(run->remedy.empty()) << name << " is of models that are not trained";
  }
  EXPECT_EQ(find_fate(plans, "moe-extended-tp")->remedy, "it is not planned; leave it out");
}

/// How many words after an option are its values: "one", "several" or "none".
std::string values_of(OptionFate::Values values) {
  switch (values) {
    case OptionFate::kOne:
      return "one";
    case OptionFate::kSeveral:
      return "several";
    default:
      return "none";
  }
}

// Reads tests/dialects/megatron/goldens/megatron_options.json: every option of Megatron-LM core 0.12's
// pretrain_gpt.py (tools/golden/megatron_options.py). We must know each one, with the same default.
TEST(Fates, KnowMegatronsOptionsWithTheirDefaults) {
  PretrainConfig config;
  LaunchConfig launch;
  const std::vector<Field> fields = fields_of(config), launch_fields = fields_of(launch);
  OptionTable table;
  for (const auto* group : {&fields, &launch_fields})
    for (const Field& field : *group) table.add(field);
  table.fates.add([] { return fates_in(kPretrain); });
  int compared = 0;
  const Json options = Json::load(test::test_data("dialects/megatron/goldens/megatron_options.json"));
  for (const Json& option : options.as_array()) {
    const std::string& name = option["option"].as_string();
    SCOPED_TRACE(name);
    if (const OptionMatch* match = table.find(name)) {
      const Field& field = *table.fields[match->field];
      EXPECT_EQ(option["values"], Json(is_flag(field) ? "none" : takes_several(field) ? "several" : "one"));
      if (option["default"].is_null() || name == "ckpt-format") continue;  // our default is our own format
      EXPECT_TRUE(differences({field}, Json(Json::Object{{json_key(field.name), option["default"]}})).empty())
          << "ours " << field_text(field) << ", Megatron's " << option["default"].dump();
      ++compared;
    } else if (const OptionFate* fate = table.find_fate(name); !fate) {
      ADD_FAILURE() << "unknown";
    } else if (fate->remedy.empty()) {
      EXPECT_EQ(option["values"], Json(values_of(fate->values)));
    }
  }
  EXPECT_GT(compared, 25);
}

}  // namespace
}  // namespace megalith
