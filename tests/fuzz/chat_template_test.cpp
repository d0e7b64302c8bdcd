#include "libcore/text/chat/chat_template.h"

#include "tests/fuzz/fuzz.h"

MEGALITH_FUZZ_TARGET(chat_template) {
  using namespace megalith;
  if (bytes.empty()) return;  // an empty file means that there is no template: no error
  const ChatTemplate chat(std::string(bytes), "fuzz.jinja");
  const Json messages = Json::parse(
      R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "caf\u00e9  <a> "},)"
      R"( {"role": "assistant", "content": "x", "tool_calls": [{"name": "f", "arguments": {"a": [1, 2.5]}}]}])",
      "messages");
  render_chat(chat, messages, {.bos_token = "<s>", .eos_token = "</s>"});
}
