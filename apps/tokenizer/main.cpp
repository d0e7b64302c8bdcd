#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>

#include "apps/app.h"
#include "apps/manual_notes.h"
#include "libcore/base/log.h"
#include "libcore/base/machine/proc.h"
#include "libcore/base/text.h"
#include "libcore/config/thread_limit.h"
#include "libcore/config/tokenizer_config.h"
#include "libcore/data/preprocess/corpus_files.h"
#include "libcore/io/files/file.h"
#include "libcore/io/run/lock_file.h"
#include "libcore/io/run/run_files.h"
#include "libcore/io/streams/input_stream.h"
#include "libcore/options/cli.h"
#include "libcore/options/problems.h"
#include "libcore/text/bpe/train/bpe_trainer.h"
#include "libcore/text/bpe/train/training_corpus.h"
#include "libcore/text/formats/make_tokenizer.h"
#include "libcore/text/formats/tokenizer_writer.h"
#include "libcore/text/tokenizer_lines.h"

namespace megalith {
namespace {

struct TokenizerAppConfig {
  std::string command, output;
  std::vector<std::string> input, json_keys = {"text"};
  TextUnit text = TextUnit::kNone;
  bool json = false;
  std::optional<int> vocab_size;
  int workers = 0;

  template <class V>
  void fields(V&& v) {
    v("command", command,
      "What to do: train; encode (a line of text becomes a line of ids); decode (the reverse).", positional(),
      required(), one_of({"train", "encode", "decode"}));
    v("input", input,
      "Files to read, plain or compressed; - is stdin. For train: loose JSON, one document a line, or "
      "Parquet; a folder stands for the .json, .jsonl and .parquet files below it (with --text: the .txt "
      "files), a quoted pattern for the files that match.",
      metavar("FILE"), default_text("stdin, for encode and decode"));
    v("json-keys", json_keys, "Keys whose texts train reads.", metavar("KEY"));
    v("text", text, kTextHelp);
    v("json", json, "A line of text is a JSON string, for encode and decode.");
    v("vocab-size", vocab_size,
      "Number of tokens to train, <|endoftext|> and the 256 bytes included; for NullTokenizer and "
      "TikTokenizer the size of the vocabulary.",
      at_least(1), default_text("32000 for train"));
    v("output", output,
      "Folder for vocab.json, merges.txt, tokenizer.json and the other files that transformers needs.",
      metavar("DIR"));
    v("workers", workers, "Threads that read, and count, encode or decode.", at_least(1),
      default_text("all cores that the process may use"));
  }
  void finish() {
    if (workers == 0) workers = usable_cpus();
  }
  void validate(Problems& problems) const {
    constexpr int kMin = 257;
    require_possible_threads(workers, "workers", problems);
    if (command == "train") {
      if (input.empty()) problems.add("train needs ", Opt{"input"}, " FILE");
      if (output.empty()) problems.add("train needs ", Opt{"output"}, " DIR");
      if (vocab_size && *vocab_size < kMin)
        problems.add(Opt{"vocab-size"}, ' ', *vocab_size, ", wanted at least ", kMin, " to train");
      if (json) problems.add(Opt{"json"}, " is for encode and decode");
      require_no_keys(json_keys, text, problems);
    } else if (!output.empty() || text != TextUnit::kNone) {
      problems.add(Opt{output.empty() ? "text" : "output"}, " is for train");
    }
  }
};

void train(const TokenizerAppConfig& config, const std::string& options_file) {
  const std::vector<std::string> inputs = corpus_files(config.input, config.text);
  RunFiles files;
  files.reads("--config", options_file);
  files.reads("--input", inputs);
  files.replaces_folder("--output", config.output);
  files.check();
  make_directories(parent_or_here((std::filesystem::path(config.output) / "").parent_path()));
  const LockFile lock(config.output);
  TrainingCorpus corpus{.files = inputs, .text = config.text, .workers = static_cast<size_t>(config.workers)};
  if (config.text == TextUnit::kNone) corpus.json_keys = config.json_keys;
  const PieceCounts pieces = count_pretokens(corpus);
  log("counted ", format_count(static_cast<int64_t>(pieces.size())), " different pretokens");
  const int wanted = config.vocab_size.value_or(32000);
  const TrainedBpe trained = train_bpe(pieces, wanted, {"<|endoftext|>"});
  if (trained.tokens.size() < static_cast<size_t>(wanted))
    warn("the input gives only ", trained.tokens.size(), " tokens of --vocab-size ", wanted,
         ": every pretoken is one token already");
  write_tokenizer(config.output, trained);
  log("wrote ", config.output, ": ", trained.tokens.size(), " tokens, ", trained.merges.size(), " merges");
}

/// The bytes of `inputs` ("-" is stdin), or Tokenizer::kUnknownSize unless all are regular files that are not
/// compressed.
uint64_t text_bytes(const std::vector<std::string>& inputs) {
  uint64_t bytes = 0;
  for (const std::string& input : inputs) {
    const std::string path = input == "-" ? "/dev/stdin" : input;
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) return Tokenizer::kUnknownSize;
    const uint64_t size = std::filesystem::file_size(path, error);
    if (error || is_compressed(path)) return Tokenizer::kUnknownSize;
    bytes += size;
  }
  return bytes;
}

void run_lines(const TokenizerAppConfig& config, const TokenizerConfig& files) {
  const auto tokenizer = make_tokenizer(tokenizer_files(files, config.vocab_size.value_or(0)));
  const TokenizerLines lines{*tokenizer, config.json, static_cast<size_t>(config.workers)};
  const std::vector<std::string> inputs = config.input.empty() ? std::vector<std::string>{"-"} : config.input;
  if (config.command == "encode") tokenizer->expect(text_bytes(inputs));
  for (const std::string& input : inputs)
    config.command == "encode" ? lines.encode(input, std::cout) : lines.decode(input, std::cout);
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  return run_app("tokenizer", [&] {
    TokenizerAppConfig config;
    TokenizerConfig files;
    Options options("tokenizer", "Train a byte-level BPE tokenizer, or see what a tokenizer does.");
    options.add("Input and output", config).add("Tokenizer of encode and decode", files);
    options
        .epilog(
            "megalith-tokenizer train --input code.jsonl --json-keys content \\\n"
            "  --vocab-size 32000 --output tokenizer\n"
            "megalith-tokenizer train --input notes --text file \\\n"
            "  --vocab-size 4096 --output tokenizer\n"
            "echo 'Hello world' | megalith-tokenizer encode --tokenizer-model tokenizer\n"
            "echo '15496 995' | megalith-tokenizer decode --tokenizer-model tokenizer\n")
        .environment(tokenizer_variables())
        .files(
            {{"vocab.json, merges.txt, tokenizer.json", "The two forms of what train makes, in --output."}});
    if (!parse_options(options, argc, argv)) return 0;
    config.command == "train" ? train(config, options.config_file()) : run_lines(config, files);
    return 0;
  });
}
