#include <utility>

#include "apps/app.h"
#include "apps/manual_notes.h"
#include "libcore/base/log.h"
#include "libcore/data/preprocess/preprocess.h"
#include "libcore/dialects/megatron/fates.h"
#include "libcore/options/cli.h"

int main(int argc, char** argv) {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  return run_app("preprocess", [&] {
    PreprocessConfig config;
    TokenizerConfig tokenizer;
    Options options("preprocess", "Turn loose JSON or plain text into indexed datasets of token ids.");
    options.add("Input and output", config).add("Tokenizer", tokenizer).fates([] {
      return fates_in(kPreprocess);
    });
    options
        .epilog(
            "megalith-preprocess --input corpus.jsonl --output-prefix corpus \\\n"
            "  --tokenizer-model tokenizer --append-eod --workers 8\n"
            "megalith-preprocess --input notes --text file --output-prefix notes \\\n"
            "  --tokenizer-model tokenizer --append-eod\n"
            "megalith-preprocess --input corpus/ --output-prefix out/corpus \\\n"
            "  --shard auto --shards 20 --tokenizer-model tokenizer --append-eod\n"
            "zcat dump.jsonl.gz | megalith-preprocess --input - --output-prefix dump \\\n"
            "  --vocab-file vocab.json --merge-file merges.txt --json-keys content\n")
        .environment({{"NLTK_DATA", "Folders with Punkt's parameters, for --split-sentences."}})
        .environment(tokenizer_variables())
        .files({{"PREFIX_KEY_document.bin, .idx", "The dataset of a key, as Megatron-LM reads it."},
                {"PREFIX_KEY_document.json", "What made it, and hashes of both."},
                {"PREFIX-00003-of-00020_KEY_document.*", "The same of a shard."},
                {"PREFIX-00003-of-00020.failed.json", "Why a shard cannot be done."}});
    if (!parse_options(options, argc, argv)) return 0;
    // like upstream's log, for `| tee log`; not from the beginning, as stdout may be for an archive
    if (config.output_prefix != "-") set_log_console(LogConsole::kStdout);
    RunFiles files;
    files.reads("--config", options.config_file());
    if (!config.shard.empty()) return run_preprocess_shards(config, tokenizer, files);
    return run_preprocess(config, tokenizer, std::move(files));
  });
}
