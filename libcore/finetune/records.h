#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "libcore/json/json.h"

namespace megalith {

/// A part of a record's text. Only answers are learned.
struct Segment {
  std::string text;
  bool answer = false;
};

/// One conversation to learn from, in order: questions and their answers.
struct Record {
  std::vector<Segment> segments;
  /// True: a chat template has rendered the text, including its special tokens. False: the tokenizer must
  /// still mark the beginning and end of the text.
  bool rendered = false;
  std::string where;        // "train.json:17"; of Parquet "train.parquet: row 17"
  std::string answer = {};  // the last answer as the record has it, without a template's marks
};

/// One question with two answers, of which the chosen one is preferred. Their segments are equal except for
/// the last one, which is the only answer.
struct RecordPair {
  Record chosen, rejected;
};

/// A conversation before a template renders it.
struct Conversation {
  Json::Array messages = {};       // {"role", "content", …}
  std::vector<bool> learned = {};  // for each message, whether it is learned if it is the assistant's
  Json tools = {};                 // a list of tools for the template; null: none
  Json::Object variables = {};     // further variables of the template
};

/// Turns a conversation into segments of text. The segments of the assistant that are learned are answers. An
/// empty function: there is no template.
using RenderMessages =
    std::function<std::vector<Segment>(const Conversation& conversation, const std::string& where)>;

/// How a record without roles becomes a prompt.
enum class PromptStyle : uint8_t {
  kAlpaca,  // instruction and input in Stanford Alpaca's wording
  kChat,    // the model's chat template, which gets the prompt as the user's message
  kPlain,   // the text as it is
};

/// Options of read_records() and read_pairs().
struct RecordOptions {
  int64_t max_records = 0;  // maximum number of records to read; 0: all
  /// Style of "instruction" records; "src" and "prompt" are plain except with kChat.
  PromptStyle style = PromptStyle::kAlpaca;
  RenderMessages render = {};
  /// Called for each member of a record that no form of a record has, and by read_records() for "rejected".
  std::function<void(const std::string& member)> unread = {};
};

/// Reads a file of records: JSON lines, one JSON array, or Parquet (ParquetRecords). A record is an object
/// with
///   "src", "tgt"                           texts (PaddleNLP)
///   "instruction", "input"?, "output"      texts (Stanford Alpaca)
///   "prompt", "completion" | "response"    texts or lists of messages, of which the completion is learned
///   "messages"                             [{"role": system|developer|user|assistant|tool, "content"}]
///   "conversations"                        [{"from": system|human|gpt, "value"}] (ShareGPT)
///   "text"                                 a text, all of which is learned
/// Beside another form "text" must be a rendering of it (check_rendering()), and is not learned; "chosen"
/// must be its answer (check_chosen()). Members that are null or empty count as missing. Beside messages
/// there may be "system", a text, "tools", a list or its JSON, and "chat_template_kwargs", an object of
/// variables for the template. A message of the assistant may have "tool_calls" and "weight": 0 if it is not
/// learned. Other members of a message go to the template, other members of a record to `unread`. kData, with
/// file and line (Parquet: row), for anything else, for what would be dropped (check_record_members()), for
/// "function_call" of a message, for an empty answer, and for text that is not UTF-8; kNoInput.
void read_records(const std::string& path, const RecordOptions&, const std::function<void(Record&&)>& take);

/// Reads one object as read_records() does.
Record record_of(const Json&, const RecordOptions&, const std::string& where);

/// Reads a file of preferences; errors are those of read_records(). A record holds "chosen" and "rejected",
/// which are texts or messages ({"role", "content"}, {"from", "value"}, or a list of them that ends with the
/// answer), and the question as
///   "prompt"                         a text, or a list of messages
///   "instruction", "input"?          texts (Stanford Alpaca)
///   "messages" | "conversations"     lists of messages (LLaMA-Factory's ShareGPT form)
/// or "src" and "tgt" in turns, "response" and "sort" (PaddleNLP's run_dpo.py),
/// or no question, if "chosen" and "rejected" are whole conversations. A question beside whole conversations
/// must be theirs, and both answers must have the same one. kData for what would be dropped, too
/// (check_pair_members()).
void read_pairs(const std::string& path, const RecordOptions&, const std::function<void(RecordPair&&)>& take);
RecordPair pair_of(const Json&, const RecordOptions&, const std::string& where);

/// The prompt of an instruction record in Stanford Alpaca's wording.
std::string alpaca_prompt(const std::string& instruction, const std::string& input);

}  // namespace megalith
