#pragma once

#include "libcore/generate/chat_history.h"
#include "libcore/generate/generate.h"
#include "libcore/generate/printer.h"

namespace megalith {

/// What a conversation works with. All of it must outlive the conversation.
struct ConversationParts {
  Generator& generator;
  const Tokenizer& tokenizer;
  ChatHistory& history;
  Generator::Job answer;  // how each answer is generated: sampling, stop tokens and max_length
  Printer::Style style;
};

/// Answers the lines of stdin, one after another, on stdout, each with everything before it as its history. A
/// line that begins with "/" is a command: /reset, /system TEXT, /help or /exit; other commands are kUsage,
/// and blank lines are skipped. If stdin is a terminal, Ctrl-C ends an answer, and a message says what was
/// wrong with a line; otherwise the Error is thrown. Errors are those of TurnReader, ChatHistory and
/// Generator.
void converse(const ConversationParts&);

}  // namespace megalith
