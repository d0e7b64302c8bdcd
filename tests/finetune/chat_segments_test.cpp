#include "libcore/finetune/chat_segments.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith::test {
namespace {

// ChatML, as in Qwen's models.
constexpr const char* kChatMl =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' "
    "+ '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

Json::Array conversation(const std::vector<std::pair<std::string, std::string>>& turns) {
  Json::Array out;
  for (const auto& [role, content] : turns)
    out.push_back(Json(Json::Object{{"role", role}, {"content", content}}));
  return out;
}

TEST(ChatSegments, AnswersAreWhatTheTemplateAddsToThePrompt) {
  const ChatTemplate chat(kChatMl, "chat");
  const auto segments = chat_segments(
      chat, {},
      conversation({{"system", "s"}, {"user", "q"}, {"assistant", "a"}, {"user", "r"}, {"assistant", "b"}}),
      "x:1");
  ASSERT_EQ(segments.size(), 4U);
  EXPECT_EQ(segments[0].text,
            "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_FALSE(segments[0].answer);
  EXPECT_EQ(segments[1].text, "a<|im_end|>\n");
  EXPECT_TRUE(segments[1].answer);
  EXPECT_EQ(segments[2].text, "<|im_start|>user\nr<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_FALSE(segments[2].answer);
  EXPECT_EQ(segments[3].text, "b<|im_end|>\n");
  EXPECT_TRUE(segments[3].answer);
}

TEST(ChatSegments, ATemplateThatRewritesEarlierTurnsIsNamed) {
  const ChatTemplate chat("{{ messages | length }}{% for m in messages %}{{ m['content'] }}{% endfor %}",
                          "chat");
  try {
    chat_segments(chat, {}, conversation({{"user", "q"}, {"assistant", "a"}}), "x:1");
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("x:1: the chat template")) << error.what();
  }
}

TEST(ChatSegments, WhatTheTemplateRaisesHasThePlaceOfTheRecord) {
  const ChatTemplate chat("{{ raise_exception('no system here') }}", "chat");
  try {
    chat_segments(chat, {}, conversation({{"user", "q"}, {"assistant", "a"}}), "x:9");
    FAIL();
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_TRUE(what.starts_with("x:9: ")) << what;
    EXPECT_NE(what.find("no system here"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace megalith::test
