#include "libcore/dialects/llama_factory/factory_names.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/finetune/chat_segments.h"
#include "libcore/text/chat/chat_template.h"

namespace megalith {
namespace {

/// A conversation as --template llama3 renders it, with the learned answers in brackets.
std::string rendered(const std::vector<std::pair<const char*, const char*>>& turns) {
  FactoryNames names;
  names.template_name = "llama3";
  FinetuneConfig config;
  names.apply(config);
  EXPECT_EQ(config.data.style, PromptStyle::kChat);
  Conversation conversation;
  for (const auto& [role, content] : turns) {
    conversation.messages.push_back(Json::Object{{"role", role}, {"content", content}});
    conversation.learned.push_back(true);
  }
  const ChatTemplate chat(config.data.named_template->jinja, config.data.named_template->name);
  std::string out;
  for (const Segment& part : chat_segments(
           chat, {.bos_token = "<|begin_of_text|>", .eos_token = "<|end_of_text|>"}, conversation, "x:1"))
    out += part.answer ? "[" + part.text + "]" : part.text;
  return out;
}

// The expected texts follow the slots of the template "llama3" in LLaMA-Factory's data/template.py by hand:
// prefix, system, user (with the assistant's header behind it), assistant, observation.
TEST(FactoryTemplates, Llama3IsThatOfLlamaFactory) {
  EXPECT_EQ(rendered({{"user", " q "}, {"assistant", "a"}, {"user", "r"}, {"assistant", "b\n"}}),
            "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n q <|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n[a<|eot_id|>]"
            "<|start_header_id|>user<|end_header_id|>\n\nr<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n[b\n<|eot_id|>]");
  EXPECT_EQ(rendered({{"system", "s"}, {"user", "q"}, {"assistant", "a"}, {"tool", "4"}, {"assistant", "b"}}),
            "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\ns<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nq<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n[a<|eot_id|>]"
            "<|start_header_id|>ipython<|end_header_id|>\n\n4<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n[b<|eot_id|>]");
}

TEST(FactoryTemplates, AreLeftToTheModelWithoutAName) {
  FinetuneConfig config;
  FactoryNames().apply(config);
  EXPECT_FALSE(config.data.named_template);
  EXPECT_EQ(config.data.style, PromptStyle::kAlpaca);
}

TEST(FactoryNamesOfValues, BecomeOurs) {
  FactoryNames names;
  names.stage = "dpo";
  FinetuneConfig config;
  config.method.modules = {"all"};
  names.apply(config);
  EXPECT_TRUE(config.preference.wanted);
  EXPECT_EQ(config.method.modules, std::vector<std::string>{std::string(kAllLinear)});
}

}  // namespace
}  // namespace megalith
