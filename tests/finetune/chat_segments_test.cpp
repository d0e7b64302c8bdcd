#include "libcore/finetune/chat_segments.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/finetune/examples.h"
#include "libcore/text/formats/make_tokenizer.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

// ChatML, as in Qwen's models.
constexpr const char* kChatMl =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' "
    "+ '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

Conversation conversation(const std::vector<std::pair<std::string, std::string>>& turns) {
  Conversation out;
  for (const auto& [role, content] : turns) {
    out.messages.push_back(Json(Json::Object{{"role", role}, {"content", content}}));
    out.learned.push_back(true);
  }
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
    EXPECT_TRUE(std::string(error.what()).starts_with("x:1: the chat template changes message 2 of 2"))
        << error.what();
  }
}

/// The text of the segments, with answers in brackets.
std::string shown(const ChatTemplate& chat, const Conversation& conversation) {
  std::string out;
  for (const Segment& one : chat_segments(chat, {.bos_token = {}, .eos_token = "</s>"}, conversation, "x:1"))
    out += one.answer ? "[" + one.text + "]" : one.text;
  return out;
}

// The masks are those of transformers' return_assistant_tokens_mask, whose spans are the blocks' texts.
TEST(ChatSegments, GenerationBlocksAreTheAnswers) {
  const ChatTemplate chat(
      "{% for m in messages %}{% if m.role == 'assistant' %}<a>{% generation %}\n{{ m.content }}</s>"
      "{% endgeneration %}\n{% else %}<{{ m.role }}>{{ m.content }}\n{% endif %}{% endfor %}"
      "{% if add_generation_prompt %}<a>{% endif %}",
      "chat");
  Conversation turns = conversation({{"user", "q"}, {"assistant", "a"}, {"user", "r"}, {"assistant", "b"}});
  EXPECT_EQ(shown(chat, turns), "<user>q\n<a>[a</s>]<user>r\n<a>[b</s>]");
  turns.learned[1] = false;
  EXPECT_EQ(shown(chat, turns), "<user>q\n<a>a</s><user>r\n<a>[b</s>]");
  // An answer without a block is not learned.
  const ChatTemplate last(
      "{% for m in messages %}{% if loop.last %}{% generation %}{{ m.content }}{% endgeneration %}"
      "{% else %}{{ m.content }},{% endif %}{% endfor %}",
      "chat");
  turns.learned[1] = true;
  EXPECT_EQ(shown(last, turns), "q,a,r,[b]");
}

// Ids and masks: transformers' apply_chat_template, tools/golden/make_assistant_masks.py.
TEST(ChatSegments, GenerationBlocksAreTransformersAssistantMask) {
  const Json goldens = Json::load(test_data("finetune/goldens/assistant_masks.json"));
  const PlainTokenizer tokenizer(make_tokenizer({.type = "HuggingFaceTokenizer",
                                                 .vocab = {},
                                                 .merges = {},
                                                 .model = test_data("text/goldens/trained/tokenizer.json")}),
                                 0);
  for (const Json& one : goldens["cases"].as_array()) {
    const std::string& name = one["template"].as_string();
    const ChatTemplate chat(goldens["templates"][name].as_string(), name);
    Conversation turns{.messages = one["messages"].as_array()};
    turns.learned.assign(turns.messages.size(), true);
    Examples examples;
    const Record record{.segments = chat_segments(chat, {}, turns, "x:1"), .rendered = true, .where = "x:1"};
    examples.add(record, tokenizer, {});
    const std::string& mask = one["mask"].as_string();
    ASSERT_EQ(examples.size(), mask.find('1') == std::string::npos ? 0 : 1) << name;
    if (examples.size() == 0) continue;  // no answer is marked
    Json ids = Json::array();
    for (const int32_t id : examples[0].ids) ids.push_back(Json(int64_t{id}));
    std::string counts;
    for (const uint8_t count : examples[0].counts) counts += count ? '1' : '0';
    EXPECT_EQ(ids.dump(), one["ids"].dump()) << name;
    EXPECT_EQ(counts, mask) << name << one["messages"].dump();
  }
}

TEST(ChatSegments, AnAnswerWithoutWeightIsNotLearned) {
  Conversation turns = conversation({{"user", "q"}, {"assistant", "a"}, {"user", "r"}, {"assistant", "b"}});
  turns.learned[1] = false;
  EXPECT_EQ(shown(ChatTemplate(kChatMl, "chat"), turns),
            "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\na<|im_end|>\n<|im_start|>user\nr"
            "<|im_end|>\n<|im_start|>assistant\n[b<|im_end|>\n]");
}

// In the manner of DeepSeek-R1's distilled models: the prompt opens the reasoning, an earlier answer has
// none.
TEST(ChatSegments, APromptMayOpenTheReasoning) {
  const ChatTemplate chat(
      "{% for m in messages %}{% if m.role == 'user' %}<User>{{ m.content }}{% else %}"
      "<Assistant>{{ m.content.split('</think>')[-1] }}</s>{% endif %}{% endfor %}"
      "{% if add_generation_prompt %}<Assistant><think>\n{% endif %}",
      "chat");
  EXPECT_EQ(
      shown(chat, conversation({{"user", "q"}, {"assistant", "<thin>a"}, {"user", "r"}, {"assistant", "b"}})),
      "<User>q<Assistant>[<thin>a</s>]<User>r<Assistant>[b</s>]");
}

// In the manner of Qwen3: only the last answer has its reasoning.
TEST(ChatSegments, EarlierAnswersMayLoseTheirReasoning) {
  const ChatTemplate chat(
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if loop.last and m.role == 'assistant' "
      "%}<think>\n\n"
      "</think>\n\n{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
      "chat");
  EXPECT_EQ(shown(chat, conversation({{"user", "q"}, {"assistant", "a"}, {"user", "r"}, {"assistant", "b"}})),
            "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n[a<|im_end|>\n]<|im_start|>user\nr"
            "<|im_end|>\n<|im_start|>assistant\n[<think>\n\n</think>\n\nb<|im_end|>\n]");
}

// As before, with reasoning in the contents: the template drops that of the earlier answer.
TEST(ChatSegments, ReasoningIsLearnedWhereTheTemplateKeepsIt) {
  const ChatTemplate chat(
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if loop.last and '</think>' in m.content "
      "%}<think>\n"
      "{{ m.content.split('</think>')[0].split('<think>')[-1].strip('\n') }}\n</think>\n\n{% endif %}"
      "{{ m.content.split('</think>')[-1].lstrip('\n') }}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
      "chat");
  const auto answer = [](const std::string& why, const std::string& what) {
    return "<think>\n" + why + "\n</think>\n\n" + what;
  };
  EXPECT_EQ(shown(chat, conversation({{"user", "q"},
                                      {"assistant", answer("why a", "a")},
                                      {"user", "r"},
                                      {"assistant", answer("why b", "b")}})),
            "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n[a<|im_end|>\n]<|im_start|>user\nr"
            "<|im_end|>\n<|im_start|>assistant\n[<think>\nwhy b\n</think>\n\nb<|im_end|>\n]");
}

// In the manner of Phi-3.5: the end of text follows the last message only.
TEST(ChatSegments, TheEndMayFollowTheLastMessageOnly) {
  const ChatTemplate chat(
      "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|assistant|>\n{% else %}<|endoftext|>{% endif %}",
      "chat");
  EXPECT_EQ(shown(chat, conversation({{"user", "q"}, {"assistant", "a"}, {"user", "r"}, {"assistant", "b"}})),
            "<|user|>\nq<|end|>\n<|assistant|>\n[a<|end|>\n]<|user|>\nr<|end|>\n<|assistant|>\n"
            "[b<|end|>\n<|endoftext|>]");
}

TEST(ChatSegments, RefusesWhatTheTemplateWouldLeaveOut) {
  const auto refusal = [](const Conversation& turns) {
    try {
      shown(ChatTemplate(kChatMl, "chat"), turns);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  Conversation tools = conversation({{"user", "q"}, {"assistant", "a"}});
  tools.tools = Json(Json::Array{Json("f")});
  EXPECT_TRUE(refusal(tools).starts_with("x:1: the chat template reads no \"tools\"")) << refusal(tools);
  Conversation calls = conversation({{"user", "q"}, {"assistant", "a"}});
  calls.messages[1].set("tool_calls", Json(Json::Array{Json("f")}));
  EXPECT_TRUE(refusal(calls).starts_with("x:1: the chat template reads no \"tool_calls\" of a message"))
      << refusal(calls);
}

TEST(ChatSegments, ADeveloperSpeaksAsTheSystem) {
  EXPECT_EQ(shown(ChatTemplate("{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}", "chat"),
                  conversation({{"developer", "d"}, {"user", "q"}, {"assistant", "a"}})),
            "system:d;user:q;[assistant:a;]");
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
