#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// How an item is scored.
enum class TaskKind {
  kChoices,   // which of several continuations is the likeliest: acc, acc_norm
  kLastWord,  // whether the one continuation is what the model would write: acc, perplexity
  kText,      // how likely a whole text is: perplexities of words and bytes, bits per byte
};

/// One item of a task.
struct TaskItem {
  std::string context;  // what precedes the continuations; empty for kText
  /// The choices, of which `answer` is the right one; or the last word, with the blank before it; or the
  /// text.
  std::vector<std::string> continuations;
  size_t answer = 0;
  std::string source;  // the item as its file has it: equal items are one item
};

/// Which items of the file that examples are drawn from may be examples of an item.
enum class OwnExample {
  kLeftOut,           // all but those that equal the item
  kLeftOutOfOwnFile,  // all, unless they come from the file of the item: then all but those that equal it
  kNotLeftOut,        // all
};

class Json;
struct ItemFile;

/// A form of files. The rules of published ones are those of lm-evaluation-harness 0.4.13.
struct TaskForm {
  const char* name;
  TaskKind kind;
  OwnExample own;
  const char* members;  // what its items hold, for messages
  TaskItem (*read)(const ItemFile&, const Json& object);
};

/// The published form of this name ("hellaswag"); null if there is none.
const TaskForm* find_task_form(std::string_view name);
std::vector<std::string> task_form_names();

/// Items of a file, and how they are scored.
struct TaskItems {
  TaskKind kind;
  OwnExample own;
  std::vector<TaskItem> items;
};

/// Reads the items of a file, one JSON object a line. `form`: null for our own form, {"context", "choices",
/// "answer"} or {"text"}. PIQA's answers may be in the items ("label") or in the file beside it that has them
/// one a line (valid.jsonl: valid-labels.lst). kNoInput, kIo; kData with file, line, what was found and what
/// was wanted.
TaskItems read_task_items(const std::string& path, const TaskForm* form);

/// HellaSwag's cleaning of a text: the marks of WikiHow's pages ("[header]") are taken out.
std::string hellaswag_text(std::string_view text);

}  // namespace megalith
