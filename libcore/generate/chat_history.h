#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "libcore/generate/printer.h"
#include "libcore/json/json.h"
#include "libcore/text/chat/chat_template.h"

namespace megalith {

/// The messages of a conversation, and the prompts that a chat template makes of them.
class ChatHistory {
 public:
  using Encode = std::function<std::vector<int32_t>(const std::string&)>;
  /// The template must outlive the history.
  ChatHistory(const ChatTemplate&, ChatTokens, Encode);

  /// Sets the system message, which stays the first one. An empty text removes it.
  void set_system(const std::string& text);
  void ask(const std::string& question);
  void answer(const std::string& text);
  /// Removes the last question, which must have no answer yet.
  void take_back();
  /// Forgets everything but the system message.
  void reset();

  struct Fitted {
    Prompt prompt;
    int64_t dropped;  // number of questions, with their answers, that did not fit
  };
  /// The prompt for the answer to the last question. If it has more than `limit` tokens, forgets the oldest
  /// questions and their answers until it has at most three quarters of that, so that not every question
  /// needs that again; the last question stays. kData if the template refuses the messages.
  Fitted prompt(int64_t limit);

 private:
  Prompt rendered() const;
  bool drop_oldest();

  const ChatTemplate& chat_;
  ChatTokens tokens_;
  Encode encode_;
  std::string system_;
  std::vector<Json> messages_;  // questions and answers in turn; the first and the last are questions
};

}  // namespace megalith
