// Forty templates, each of which uses one construct of Jinja. Expected texts: transformers'
// apply_chat_template, tools/golden/make_template_goldens.py.
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/text/chat/chat_template.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

/// What a file of --chat holds.
Json chat_of(const Json& goldens, const Json& one) {
  Json chat(
      Json::Object{{"messages", goldens["chats"].as_array()[static_cast<size_t>(one["chat"].as_int())]}});
  if (one["tools"].as_bool()) chat.set("tools", goldens["tools"]);
  return chat;
}

TEST(TemplateConstructs, RenderAsTransformers) {
  const Json goldens = Json::load(test::test_data("text/goldens/template_constructs.json"));
  ASSERT_EQ(goldens["templates"].as_object().size(), 40U);
  for (const Json& one : goldens["cases"].as_array()) {
    const std::string& name = one["template"].as_string();
    const Json* const refused = one.find("error");
    const std::string about = name + ", chat " + one["chat"].dump() + ", tools " + one["tools"].dump();
    try {
      const std::string text = render_chat(ChatTemplate(goldens["templates"][name].as_string(), name),
                                           chat_of(goldens, one), {.bos_token = "<s>", .eos_token = "</s>"});
      EXPECT_EQ(text, refused ? "refused" : one["text"].as_string()) << about;
    } catch (const Error& error) {
      ASSERT_TRUE(refused) << about << ": " << error.what();
      EXPECT_NE(std::string(error.what()).find(refused->as_string()), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace megalith
