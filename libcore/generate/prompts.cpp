#include "libcore/generate/prompts.h"

#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/io/streams/input_stream.h"
#include "libcore/io/streams/line_reader.h"
#include "libcore/json/json.h"

namespace megalith {
namespace {

void want_utf8(const std::string& text, const std::string& where) {
  const size_t good = valid_utf8_prefix(text);
  if (good != text.size()) fail(ErrorKind::kData, where, ": byte ", good, " is not valid UTF-8");
}

std::string prompt_of(const std::string& line, const std::string& where) {
  const Json json = Json::parse(line, where);
  const Json* prompt = json.find("prompt");
  if (prompt == nullptr || !prompt->is_string())
    fail(ErrorKind::kData, where, ": found ", shortened(line, 60),
         "; wanted an object with a text \"prompt\"");
  return prompt->as_string();
}

std::vector<std::string> read_lines(const std::string& path) {
  std::vector<std::string> prompts;
  std::string text = read_text(path);
  if (text.ends_with('\n')) text.pop_back();
  if (text.empty()) fail(ErrorKind::kData, path, ": holds no prompt");
  const bool json = uncompressed_name(path).ends_with(".jsonl");
  for (std::string& line : split(text, '\n')) {
    const std::string where = concat(path, ":", prompts.size() + 1);
    if (line.ends_with('\r')) line.pop_back();
    prompts.push_back(json ? prompt_of(line, where) : line);
    want_utf8(prompts.back(), where);
  }
  return prompts;
}

}  // namespace

std::string read_text(const std::string& path) {
  if (path == "-" && ::isatty(STDIN_FILENO) == 1)
    log("reading from the terminal; Ctrl-D on an empty line ends the text");
  constexpr size_t kAtOnce = size_t{1} << 16;
  InputStream input(path);
  std::string text;
  for (size_t got = 1; got > 0;) {
    const size_t before = text.size();
    text.resize(before + kAtOnce);
    got = input.read(text.data() + before, kAtOnce);
    text.resize(before + got);
    if (text.size() > kLongestLine)
      fail(ErrorKind::kData, path, ": has more than ", kLongestLine >> 20, " MiB; wanted a text for a model");
  }
  return text;
}

std::vector<std::string> read_prompts(const PromptOptions& options) {
  if (!options.prompts_file.empty()) return read_lines(options.prompts_file);
  std::vector<std::string> prompts = options.prompts;
  if (prompts.empty()) {
    prompts.push_back(read_text("-"));
    if (prompts[0].empty())
      fail(ErrorKind::kUsage, "stdin is empty; give --prompt, --prompts-file or --chat, or a text on stdin");
    if (prompts[0].ends_with('\n')) prompts[0].pop_back();
  }
  for (const std::string& prompt : prompts) want_utf8(prompt, "--prompt");
  return prompts;
}

}  // namespace megalith
