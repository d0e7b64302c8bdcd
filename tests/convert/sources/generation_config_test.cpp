// Tests of the generation settings that our checkpoints store are in apps/finetune/finetune_begin_test.cpp.
#include "libcore/convert/sources/generation_config.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/convert/targets/hf.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

class GenerationConfig : public testing::Test {
 protected:
  GenerationConfig() {
    fs::copy(test::test_data("parity/goldens/generate-gpt2"), dir_ / "model");
    fs::copy(test::test_data("text/goldens/trained/tokenizer.json"), dir_ / "model");
  }
  Json found() const { return generation_config(ModelSource(dir_ / "model")); }
  Json exported() const {
    const ModelSource source(dir_ / "model");
    export_hf({.source = source, .tokenizer_folder = dir_ / "model"}, dir_ / "out");
    return Json::load(dir_ / "out/generation_config.json");
  }
  test::TempDir dir_;
};

TEST_F(GenerationConfig, IsConfigJsonsEndWhereThereIsNoFile) {
  EXPECT_EQ(found(), Json(Json::Object{{"eos_token_id", 0}}));
  EXPECT_EQ(exported()["eos_token_id"], Json(0));
}

TEST_F(GenerationConfig, IsTheFilesAndGoesIntoAnExport) {
  const std::string text = R"({"do_sample": true, "eos_token_id": [3, 4], "temperature": 0.6})";
  write_file(dir_ / "model/generation_config.json", text);
  EXPECT_EQ(found(), Json::parse(text, "text"));
  const Json out = exported(), own = Json::parse(text, "text");
  for (const auto& [name, value] : own.as_object()) EXPECT_EQ(out[name], value);
  EXPECT_NE(out.find("bos_token_id"), nullptr);
}

// Members that are null must be written with the same values as if the file did not have them.
TEST_F(GenerationConfig, SaysNothingWhereItIsNull) {
  write_file(dir_ / "model/generation_config.json", R"({"top_k": 5})");
  const Json wanted = exported();
  ASSERT_FALSE(wanted["bos_token_id"].is_null());
  fs::remove_all(dir_ / "out");
  write_file(dir_ / "model/generation_config.json",
             R"({"top_k": 5, "bos_token_id": null, "eos_token_id": null})");
  const Json out = exported();
  for (const auto& [name, value] : wanted.as_object()) EXPECT_EQ(out[name], value) << name;
}

TEST_F(GenerationConfig, NamesWhatSaysTheEnd) {
  const ModelSource source(dir_ / "model");
  std::string from;
  generation_config(source, &from);
  EXPECT_EQ(from, dir_ / "model/config.json");
  write_file(dir_ / "model/generation_config.json", R"({"eos_token_id": 3})");
  generation_config(source, &from);
  EXPECT_EQ(from, dir_ / "model/generation_config.json");
}

TEST_F(GenerationConfig, OfAFileWithoutAnEndHasConfigJsons) {
  write_file(dir_ / "model/generation_config.json", R"({"top_k": 5})");
  EXPECT_EQ(found(), Json::parse(R"({"top_k": 5, "eos_token_id": 0})", "text"));
}

TEST_F(GenerationConfig, ThatIsNoObjectIsNamed) {
  write_file(dir_ / "model/generation_config.json", "[1]");
  try {
    found();
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what()).find("generation_config.json: is not a JSON object"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace megalith
