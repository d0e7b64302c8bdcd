#include "apps/generate/run_generate.h"

#include <algorithm>
#include <cstdio>
#include <iomanip>
#include <memory>
#include <sstream>
#include <string>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/convert/model_source.h"
#include "libcore/model/param_store.h"
#include "libcore/ops/cuda_plugin.h"

namespace megalith {
namespace {

std::string speed(int64_t tokens, double seconds) {
  std::ostringstream out;
  out << tokens << (tokens == 1 ? " token" : " tokens") << " in " << std::fixed << std::setprecision(3)
      << seconds << " s";
  if (tokens > 0 && seconds > 0)
    out << " (" << std::setprecision(1) << static_cast<double>(tokens) / seconds << " tokens/s)";
  return out.str();
}

std::unique_ptr<Tokenizer> tokenizer_of(const ModelSource& source) {
  if (source.tokenizer().type.empty())
    fail(ErrorKind::kUsage, source.path(),
         ": the model came without a tokenizer, so text cannot be read or "
         "written; convert or train it with one");
  return make_tokenizer(source.tokenizer());
}

}  // namespace

void run_generate(const GenerateConfig& config, const SampleOptions& options) {
  const ModelSource source(config.model);
  const std::unique_ptr<Tokenizer> tokenizer = tokenizer_of(source);
  const std::unique_ptr<Backend> backend = make_backend(config.device);
  Stream stream = backend->make_stream();
  ParamTable table;
  const Stage stage(source.config(), {.count = source.config().layers}, {}, table);
  const DType dtype = source.dtype() == DType::kBf16 ? DType::kBf16 : DType::kF32;
  const ParamStore store(table, stream, {.dtype = dtype, .grads = false});
  source.read(table, stream);

  const GeneratedText out = generate_text(stage, stream, *tokenizer, config.prompt, options);
  std::fwrite(out.text.data(), 1, out.text.size(), stdout);
  std::fputc('\n', stdout);
  log("prompt: ", speed(out.prompt_tokens, out.generated.prompt_seconds));
  // The first new token came from the pass over the prompt.
  const auto made = static_cast<int64_t>(out.generated.tokens.size());
  log("generated ", made, made == 1 ? " token" : " tokens", out.generated.stopped ? ", ended by itself" : "",
      "; after the first: ", speed(std::max<int64_t>(made - 1, 0), out.generated.seconds));
}

}  // namespace megalith
