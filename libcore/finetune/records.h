#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "libcore/json/json.h"

namespace megalith {

/// A stretch of a record's text. Only answers are learned.
struct Segment {
  std::string text;
  bool answer = false;
};

/// One conversation to learn from, in order: what is asked and what is to be answered.
struct Record {
  std::vector<Segment> segments;
  /// Whether the text is complete as it stands, with the special tokens that a chat template wrote; else the
  /// beginning and the end of the text are still to be marked.
  bool rendered = false;
  std::string where;        // "train.json:17"
  std::string answer = {};  // the last one as the record has it, without a template's marks
};

/// One question and two answers to it, of which the first is preferred. Their segments are alike but for the
/// last one, which alone is an answer.
struct RecordPair {
  Record chosen, rejected;
};

/// What turns the messages of a conversation into text: segments of which the assistant's are answers. Null:
/// there is no template. `messages` is a list of {"role", "content"}.
using RenderMessages =
    std::function<std::vector<Segment>(const Json::Array& messages, const std::string& where)>;

/// How records without roles become prompts.
enum class PromptStyle : uint8_t {
  kAlpaca,  // the words that Stanford Alpaca was tuned with, around instruction and input
  kChat,    // the model's chat template, the prompt as the user's message
  kPlain,   // as it stands
};

/// Reads a file of records: JSON lines, or one JSON array. A record is an object with
///   "src", "tgt"                           texts (PaddleNLP)
///   "instruction", "input"?, "output"      texts (Stanford Alpaca); "system" and "history" are kData
///   "prompt", "completion" | "response"    texts
///   "messages"                             [{"role": system|user|assistant, "content"}]
///   "conversations"                        [{"from": system|human|gpt, "value"}] (ShareGPT)
/// Other members are left alone. kData, with file and line, for anything else, for an empty answer, and for
/// text that is no UTF-8; kNoInput.
struct RecordOptions {
  int64_t max_records = 0;                   // ends after so many; 0: reads all
  PromptStyle style = PromptStyle::kAlpaca;  // of instructions; src and prompt are plain unless it is kChat
  RenderMessages render = {};
};
void read_records(const std::string& path, const RecordOptions&, const std::function<void(Record&&)>& take);

/// As read_records() does it with one object.
Record record_of(const Json&, const RecordOptions&, const std::string& where);

/// Reads a file of preferences; errors as read_records(). A record holds "chosen" and "rejected", texts or
/// messages ({"role", "content"}, {"from", "value"}, or a list of them that ends with the answer), and what
/// was asked as
///   "prompt"                         a text, or a list of messages
///   "instruction", "input"?          texts (Stanford Alpaca)
///   "messages" | "conversations"     lists of messages (LLaMA-Factory's ShareGPT form)
/// or, where "chosen" and "rejected" are whole conversations, no more.
void read_pairs(const std::string& path, const RecordOptions&, const std::function<void(RecordPair&&)>& take);
RecordPair pair_of(const Json&, const RecordOptions&, const std::string& where);

/// The prompt of an instruction record in Stanford Alpaca's words.
std::string alpaca_prompt(const std::string& instruction, const std::string& input);

}  // namespace megalith
