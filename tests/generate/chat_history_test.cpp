#include "libcore/generate/chat_history.h"

#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

const std::string kPlain = "{% for m in messages %}{{ m.role[0] }}:{{ m.content }};{% endfor %}a:";

std::vector<int32_t> one_for_each_byte(const std::string& text) {
  return {text.begin(), text.end()};
}

TEST(ChatHistory, MakesThePromptOfAllMessages) {
  const ChatTemplate chat(kPlain, "test");
  ChatHistory history(chat, {}, one_for_each_byte);
  history.ask("x");
  EXPECT_EQ(history.prompt(1000).prompt.text, "u:x;a:");
  history.answer("y");
  history.ask("z");
  history.set_system("s");
  const ChatHistory::Fitted fitted = history.prompt(1000);
  EXPECT_EQ(fitted.prompt.text, "s:s;u:x;a:y;u:z;a:");
  EXPECT_EQ(fitted.prompt.ids, one_for_each_byte(fitted.prompt.text));
  EXPECT_EQ(fitted.dropped, 0);
  history.take_back();
  history.ask("q");
  EXPECT_EQ(history.prompt(1000).prompt.text, "s:s;u:x;a:y;u:q;a:");
  history.reset();
  history.ask("n");
  EXPECT_EQ(history.prompt(1000).prompt.text, "s:s;u:n;a:");
  history.set_system("");
  EXPECT_EQ(history.prompt(1000).prompt.text, "u:n;a:");
}

// A turn has 8 bytes here ("u:1;a:1;"), the question 6 ("u:9;a:") and the system message 4.
TEST(ChatHistory, ForgetsTheOldestTurnsThatDoNotFit) {
  const ChatTemplate chat(kPlain, "test");
  const auto full = [&](int turns) {
    ChatHistory history(chat, {}, one_for_each_byte);
    history.set_system("s");
    for (int i = 1; i <= turns; ++i) {
      history.ask(std::to_string(i));
      history.answer(std::to_string(i));
    }
    history.ask("9");
    return history;
  };
  ChatHistory history = full(4);
  EXPECT_EQ(history.prompt(42).dropped, 0) << "all 42 bytes fit";
  const ChatHistory::Fitted fitted = history.prompt(41);
  EXPECT_EQ(fitted.dropped, 2) << "two turns leave 26 of at most 30 bytes";
  EXPECT_EQ(fitted.prompt.text, "s:s;u:3;a:3;u:4;a:4;u:9;a:");
  EXPECT_EQ(history.prompt(41).dropped, 0) << "they are forgotten for good";
  ChatHistory long_question = full(2);
  EXPECT_EQ(long_question.prompt(3).prompt.text, "s:s;u:9;a:") << "the question and the system message stay";
  EXPECT_EQ(long_question.prompt(3).dropped, 0);
}

TEST(ChatHistory, SaysWhatTheTemplateRefuses) {
  const ChatTemplate chat(
      "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}x", "test");
  ChatHistory history(chat, {}, one_for_each_byte);
  history.set_system("s");
  history.ask("x");
  EXPECT_THROW(history.prompt(10), Error);
  history.set_system("");
  EXPECT_EQ(history.prompt(10).prompt.text, "x");
}

}  // namespace
}  // namespace megalith
