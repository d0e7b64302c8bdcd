#include "libcore/generate/prompts.h"

#include "libcore/json/json.h"
#include "libcore/text/chat/chat_template.h"
#include "tests/fuzz/fuzz.h"

/// Reads a file of prompts, as lines of text and of JSON, and a chat.
MEGALITH_FUZZ_TARGET(prompts) {
  using namespace megalith;
  for (const char* name : {"prompts.txt", "prompts.jsonl"})
    fuzz::accept({ErrorKind::kData}, [&] {
      PromptOptions options;
      options.prompts_file = fuzz::file_of(bytes, name);
      (void)read_prompts(options);
    });
  const char* const chat = fuzz::file_of(bytes, "chat.json");
  static const ChatTemplate kTemplate(
      "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}{% endfor %}", "a template");
  (void)render_chat(kTemplate, Json::parse(read_text(chat), chat), {});
}
