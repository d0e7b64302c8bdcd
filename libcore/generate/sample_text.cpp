#include "libcore/generate/sample_text.h"

#include <cstdint>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/generate/generate.h"
#include "libcore/generate/text_stream.h"

namespace megalith {

std::string sample_text(const Stage& stage, Stream& stream, const Tokenizer& tokenizer,
                        std::string_view prompt, const SampleOptions& options) {
  try {
    std::vector<std::vector<int32_t>> ids(1);
    tokenizer.encode(prompt, ids[0]);
    if (ids[0].empty()) ids[0].push_back(tokenizer.eod());
    TextStream text(tokenizer, ids[0]);
    std::string out(prompt);
    const auto on_token = [&](size_t, int32_t token) {
      out += text.push(token);
      return true;
    };
    Generator(stage, stream, {})
        .run({.prompts = ids,
              .sampling = options,
              .stop_tokens = {tokenizer.eod()},
              .on_token = on_token,
              .on_end = {}});
    return out + text.finish();
  } catch (const Error& error) {
    return concat("(no sample: ", error.what(), ')');
  }
}

}  // namespace megalith
