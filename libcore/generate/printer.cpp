#include "libcore/generate/printer.h"

#include <utility>

#include "libcore/io/streams/standard_streams.h"
#include "libcore/json/json.h"

namespace megalith {
namespace {

const char* reason(const Generated& generated, bool stop_string) {
  if (stop_string || generated.ending == Ending::kStopToken) return "stop";
  return generated.ending == Ending::kPositions ? "positions" : "length";
}

}  // namespace

Printer::Printer(const Tokenizer& tokenizer, const std::vector<Prompt>& prompts, Style style)
    : tokenizer_(tokenizer), prompts_(prompts), style_(std::move(style)) {}

Printer::Text& Printer::text(size_t sequence) {
  const auto found = texts_.find(sequence);
  if (found != texts_.end()) return found->second;
  return texts_
      .emplace(
          sequence,
          Text{.stream = TextStream(tokenizer_, prompt(sequence).ids, style_.stop), .whole = {}, .line = {}})
      .first->second;
}

bool Printer::token(size_t sequence, int32_t token) {
  Text& text = this->text(sequence);
  text.whole += text.stream.push(token);
  write();
  return !text.stream.stopped();
}

std::string Printer::end(size_t sequence, const Generated& generated) {
  Text& text = this->text(sequence);
  text.whole += text.stream.finish();
  text.ended = true;
  if (style_.json) {
    Json tokens = Json::array();
    for (const int32_t token : generated.tokens) tokens.push_back(int64_t{token});
    text.line = Json(Json::Object{{"index", static_cast<int64_t>(sequence)},
                                  {"prompt", prompt(sequence).text},
                                  {"text", text.whole},
                                  {"tokens", std::move(tokens)},
                                  {"prompt_tokens", static_cast<int64_t>(prompt(sequence).ids.size())},
                                  {"finish_reason", reason(generated, text.stream.stopped())}})
                    .dump() +
                "\n";
  }
  std::string whole = text.whole;
  write();
  return whole;
}

void Printer::write() {
  for (auto found = texts_.find(next_); found != texts_.end(); found = texts_.find(next_)) {
    Text& text = found->second;
    if (!style_.json) {
      if (!std::exchange(text.begun, true) && style_.echo) write_stdout(prompt(next_).text);
      write_stdout(std::string_view(text.whole).substr(text.written));
      text.written = text.whole.size();
    }
    if (text.ended) write_stdout(style_.json ? text.line : "\n");
    flush_stdout();
    if (!text.ended) return;
    texts_.erase(found);
    ++next_;
  }
}

}  // namespace megalith
