#include <algorithm>
#include <thread>

#include "apps/app.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/config/cli.h"
#include "libcore/text/bpe_trainer.h"
#include "libcore/text/tokenizer_writer.h"
#include "libcore/text/training_corpus.h"

namespace megalith {
namespace {

struct TokenizerTrainConfig {
  std::string command, output;
  std::vector<std::string> input, json_keys = {"text"};
  bool text = false;
  int vocab_size = 32000, workers = 0;

  template <class V>
  void fields(V&& v) {
    v("command", command, "What to do: train.", positional(), required(), one_of({"train"}));
    v("input", input, "Loose JSON, one document a line; also compressed with gzip or zstd; - is stdin.",
      required(), metavar("FILE"));
    v("json-keys", json_keys, "Keys whose texts are read.", metavar("KEY"));
    v("text", text, "The input is plain text: each file is one document.");
    v("vocab-size", vocab_size, "Number of tokens, <|endoftext|> and the 256 bytes included.", at_least(257));
    v("output", output,
      "Folder for vocab.json, merges.txt, tokenizer.json and what transformers wants beside them.",
      required(), metavar("DIR"));
    v("workers", workers, "Threads that read and count.", at_least(1),
      default_text("all cores that the process may use"));
  }
  void finish() {
    if (workers == 0) workers = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  }
};

void train(const TokenizerTrainConfig& config) {
  TrainingCorpus corpus{
      .files = config.input, .json_keys = {}, .workers = static_cast<size_t>(config.workers)};
  if (!config.text) corpus.json_keys = config.json_keys;
  const PieceCounts pieces = count_pretokens(corpus);
  log("counted ", format_count(static_cast<int64_t>(pieces.size())), " different pretokens");
  const TrainedBpe trained = train_bpe(pieces, config.vocab_size, {"<|endoftext|>"});
  if (trained.tokens.size() < static_cast<size_t>(config.vocab_size))
    warn("the input gives only ", trained.tokens.size(), " tokens of --vocab-size ", config.vocab_size,
         ": every pretoken is one token already");
  write_tokenizer(config.output, trained);
  log("wrote ", config.output, ": ", trained.tokens.size(), " tokens, ", trained.merges.size(), " merges");
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  return run_app("tokenizer", [&] {
    TokenizerTrainConfig config;
    Options options("tokenizer", "Train a byte-level BPE tokenizer.");
    options.add("Training", config);
    options.epilog(
        "megalith-tokenizer train --input code.jsonl --json-keys content --vocab-size 32000 --output "
        "tokenizer\n");
    if (!parse_options(options, argc, argv)) return 0;
    train(config);
    return 0;
  });
}
