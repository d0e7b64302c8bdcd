#include "libcore/generate/conversation.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/generate/turn_reader.h"
#include "libcore/io/streams/standard_streams.h"

namespace megalith {
namespace {

constexpr std::string_view kHelp =
    "/reset        forget the conversation, but not the system message\n"
    "/system TEXT  give the model a system message; without TEXT: none\n"
    "/help         print this text\n"
    "/exit         end; also Ctrl-D, or Ctrl-C twice\n"
    "Ctrl-C ends an answer. To say something that begins with \"/\", type a blank before it.";

/// A line as a command. `name` is empty if the line is a question.
struct Command {
  std::string_view name, rest;
};

Command command_of(std::string_view line) {
  if (!line.starts_with('/')) return {.name = {}, .rest = line};
  const size_t end = std::min(line.find(' '), line.size());
  const size_t rest = std::min(line.find_first_not_of(' ', end), line.size());
  return {.name = line.substr(0, end), .rest = line.substr(rest)};
}

class Conversation {
 public:
  explicit Conversation(const ConversationParts& parts)
      : parts_(parts),
        printer_(parts.tokenizer, prompts_, parts.style),
        terminal_(::isatty(STDIN_FILENO) == 1),
        signs_(terminal_ && ::isatty(STDOUT_FILENO) == 1) {
    if (terminal_) stop_.emplace();
  }

  void run();

 private:
  TurnReader::Got next(TurnReader& reader, std::string& line);
  bool obey(const std::string& line);
  void reply(std::string_view question);
  std::optional<Prompt> prompt_for(std::string_view question);
  int64_t longest() const;
  Generated generate(Prompt prompt);
  void end_turn(const Generated& made);

  ConversationParts parts_;
  std::vector<Prompt> prompts_;  // one of each turn; only the last is kept
  std::string text_;             // the last answer
  Printer printer_;
  bool terminal_, signs_;  // whether stdin is a terminal, and whether "> " asks for each line
  std::optional<AnswerStop> stop_;
};

/// The longest prompt that leaves room for a token.
int64_t Conversation::longest() const {
  constexpr int64_t kNoLimit = int64_t{1} << 40;
  const int64_t positions = parts_.generator.longest_prompt().value_or(kNoLimit);
  return parts_.answer.max_length > 0 ? std::min(positions, parts_.answer.max_length - 1) : positions;
}

/// The prompt of the question with its history; nothing if the question was refused.
std::optional<Prompt> Conversation::prompt_for(std::string_view question) {
  const int64_t longest = this->longest();
  const int64_t room = std::min<int64_t>(parts_.answer.sampling.max_new_tokens, longest / 2);
  parts_.history.ask(std::string(question));
  try {
    ChatHistory::Fitted fitted = parts_.history.prompt(longest - room + 1);
    const auto tokens = static_cast<int64_t>(fitted.prompt.ids.size());
    if (fitted.dropped > 0)
      log("the history no longer fits into ", longest, " tokens; forgot the oldest ",
          fitted.dropped == 1 ? "question and its answer"
                              : concat(fitted.dropped, " questions and their answers"));
    if (tokens > longest)
      fail(ErrorKind::kUsage, "the question makes a prompt of ", tokens, " tokens, of which at most ",
           longest, " fit; shorten it");
    return std::move(fitted.prompt);
  } catch (const Error& error) {
    parts_.history.take_back();
    if (!terminal_) throw;
    warn(error.what());
    return std::nullopt;
  }
}

Generated Conversation::generate(Prompt prompt) {
  const size_t turn = prompts_.size();
  const std::array prompts{prompt.ids};
  Generator::Job job = parts_.answer;
  job.prompts = prompts;
  job.continues = true;
  const int64_t room = longest() - static_cast<int64_t>(prompt.ids.size()) + 1;
  job.sampling.max_new_tokens = static_cast<int>(std::min<int64_t>(job.sampling.max_new_tokens, room));
  // A question that is asked again gets other random numbers.
  job.sampling.seed = static_cast<int64_t>(static_cast<uint64_t>(job.sampling.seed) + turn);
  job.on_token = [&](size_t, int32_t token) {
    return printer_.token(turn, token) && !(stop_ && stop_->asked());
  };
  job.on_end = [&](size_t, const Generated& made) { text_ = printer_.end(turn, made); };
  prompts_.push_back(std::move(prompt));
  Generated made = std::move(parts_.generator.run(job).front());
  prompts_.back() = {};
  return made;
}

void Conversation::reply(std::string_view question) {
  std::optional<Prompt> prompt = prompt_for(question);
  if (!prompt) return;
  const Generated made = generate(*std::move(prompt));
  parts_.history.answer(text_);
  if (terminal_ && made.ending == Ending::kLength)
    log("(the answer was ended after ", made.tokens.size(), " tokens)");
}

/// Executes a command, or answers a question. Returns whether the conversation continues.
bool Conversation::obey(const std::string& line) {
  const auto [name, rest] = command_of(line);
  if (name.empty()) {
    reply(line.starts_with(" /") ? std::string_view(line).substr(1) : std::string_view(line));
  } else if (name == "/reset") {
    parts_.history.reset();
  } else if (name == "/system") {
    parts_.history.set_system(std::string(rest));
  } else if (name == "/help") {
    log(kHelp);
  } else if (name == "/exit") {
    return false;
  } else {
    const std::string message = concat("unknown command ", quote(std::string(name)),
                                       "; /help lists them, and a blank before the \"/\" makes it a text");
    if (!terminal_) fail(ErrorKind::kUsage, "stdin: ", message);
    warn(message);
  }
  return true;
}

TurnReader::Got Conversation::next(TurnReader& reader, std::string& line) {
  if (signs_) {
    write_stdout("> ");
    flush_stdout();
  }
  try {
    return reader.next(line);
  } catch (const Error& error) {
    if (!terminal_ || error.kind() != ErrorKind::kData) throw;
    warn(error.what());
    line.clear();
    return TurnReader::Got::kLine;
  }
}

void Conversation::run() {
  if (terminal_) log("ask the model; /help lists commands, Ctrl-D ends");
  TurnReader reader(stop_ ? &*stop_ : nullptr);
  std::string line;
  for (;;) {
    const TurnReader::Got got = next(reader, line);
    if (got != TurnReader::Got::kLine && signs_) write_stdout("\n");
    if (got == TurnReader::Got::kEnd) return;
    if (got == TurnReader::Got::kInterrupted) {
      log("Ctrl-C again or Ctrl-D ends");
      continue;
    }
    if (stop_) stop_->clear();
    if (!trim(line).empty() && !obey(line)) return;
    if (stop_) stop_->clear();
  }
}

}  // namespace

void converse(const ConversationParts& parts) {
  Conversation(parts).run();
}

}  // namespace megalith
