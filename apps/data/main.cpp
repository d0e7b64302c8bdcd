#include <iostream>
#include <memory>
#include <optional>
#include <string_view>

#include <unistd.h>

#include "apps/app.h"
#include "apps/data/shards_command.h"
#include "apps/manual_notes.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/config/tokenizer_config.h"
#include "libcore/data/cache/cache_command.h"
#include "libcore/data/indexed/sidecar.h"
#include "libcore/data/indexed/token_file.h"
#include "libcore/data/inspect/dataset_tool.h"
#include "libcore/data/preprocess/shard_hashes.h"
#include "libcore/options/cli.h"
#include "libcore/text/formats/make_tokenizer.h"

namespace megalith {
namespace {

struct DataToolConfig {
  std::string command;
  std::vector<std::string> prefixes;
  int64_t from = 0, frequent = 10, end = kGpt2End;
  std::optional<int64_t> count;
  bool json = false;

  template <class V>
  void fields(V&& v) {
    v("command", command,
      "What to do: inspect (counts, histogram of lengths, first documents), verify (structure and hashes), "
      "cat (documents), stats (inspect's figures and the frequencies of ids), from-nanogpt (make "
      "NAME_document of NAME.bin, the ids that nanoGPT's prepare.py writes), shards (how megalith-preprocess "
      "--shard divides inputs, or which shards are missing), dedup (find the documents that several "
      "shards have, between megalith-preprocess --dedup-write and --dedup-read).",
      positional(), required(),
      one_of({"inspect", "verify", "cat", "stats", "from-nanogpt", "shards", "dedup"}));
    v("prefix", prefixes,
      "Datasets, without .bin and .idx; for from-nanogpt files NAME.bin, for dedup the folder of "
      "--dedup-write.",
      positional(), metavar("PREFIX"));
    v("eod", end, "The id that ends a document for from-nanogpt.", between(0, 65535),
      default_text("50256, GPT-2's"));
    v("json", json, "Print inspect, stats, verify and the plan of shards as one JSON object a line.");
    v("from", from, "First document of cat.", at_least(0));
    v("count", count, "Documents of cat and inspect.", at_least(0), default_text("10, of inspect 3"));
    v("frequent", frequent, "Most frequent ids of stats.", at_least(0));
  }
  void validate(Problems& problems) const {
    if (command.empty()) return;
    if (command != "shards" && prefixes.empty()) problems.add("PREFIX is missing");
    if (command == "shards" && !prefixes.empty())
      problems.add("shards takes no PREFIX; give ", Opt{"missing"}, ' ', quote(prefixes.front()));
  }
};

/// Holds the tokenizer that turns ids into the text to print. Without one, ids are printed.
class TextOf {
 public:
  explicit TextOf(const TokenizerConfig& config) {
    if (config.type.empty()) return;
    tokenizer_ = make_tokenizer(tokenizer_files(config, 0));
    hash_ = tokenizer_->hash();
  }

  const Tokenizer* tokenizer() const { return tokenizer_.get(); }

  void warn_of_another(const std::string& prefix) const {
    const auto sidecar = tokenizer_ ? read_sidecar(prefix) : std::nullopt;
    if (sidecar && !sidecar->tokenizer_hash.empty() && sidecar->tokenizer_hash != hash_)
      warn(prefix, ": was made with a different tokenizer (", sidecar->tokenizer, " of ", sidecar->vocab_size,
           " ids); its text may be wrong");
  }

 private:
  std::unique_ptr<Tokenizer> tokenizer_;
  std::string hash_;
};

Terminal terminal() {
  return {columns_of(STDOUT_FILENO)};
}

std::string verified_text(const std::string& prefix, Verified what, bool as_json) {
  const bool content = what == Verified::kContent;
  if (!as_json)
    return printable(prefix) +
           (content ? ": content as written" : ": structure sound; no hashes to compare content with");
  Json line = Json::object();
  line.set("prefix", prefix);
  line.set("verified", content ? "content" : "structure");
  return line.dump();
}

/// Checks every dataset. Returns the exit code of the first failure.
int verify(const DataToolConfig& config) {
  int code = 0;
  for (const std::string& prefix : config.prefixes) {
    std::string line;
    try {
      line = verified_text(prefix, verify_dataset(prefix), config.json) + '\n';
    } catch (const Error& error) {
      tell("data: error: ", error.what());
      if (code == 0) code = exit_code(error.kind());
    }
    std::cout << line;
  }
  return code;
}

void show_json(const IndexedDataset& data, const DataToolConfig& config, const Tokenizer* tokenizer) {
  Json json = dataset_json(data);
  json.set("tokens_per_document", lengths_json(document_lengths(data)));
  if (config.command == "stats")
    json.set("ids", ids_json(count_ids(data), static_cast<size_t>(config.frequent), tokenizer));
  std::cout << json.dump() << '\n';
}

void show(const IndexedDataset& data, const DataToolConfig& config, const Tokenizer* tokenizer) {
  print_dataset(data, std::cout);
  print_lengths(document_lengths(data), terminal(), std::cout);
  if (config.command == "stats")
    print_ids(count_ids(data), static_cast<size_t>(config.frequent), tokenizer, std::cout);
  else
    print_beginnings(data, config.count.value_or(3), tokenizer, terminal(), std::cout);
}

int index_files(const DataToolConfig& config) {
  for (const std::string& path : config.prefixes) {
    const std::string prefix = prefix_of_token_file(path);
    const TokenFileCounts counts = index_token_file(path, prefix, static_cast<uint16_t>(config.end));
    std::cout << printable(prefix) << ": " << format_count(counts.tokens) << " tokens in "
              << format_count(counts.documents) << (counts.documents == 1 ? " document\n" : " documents\n");
  }
  return 0;
}

int dedup(const DataToolConfig& config) {
  for (const std::string& folder : config.prefixes) {
    const SeenSummary summary = find_seen(folder);
    std::cout << printable(folder) << ": " << format_count(static_cast<int64_t>(summary.documents))
              << " different documents in " << summary.shards
              << (summary.shards == 1 ? " shard, " : " shards, ")
              << format_count(static_cast<int64_t>(summary.seen)) << " of them in an earlier one, too\n";
  }
  return 0;
}

int run(const DataToolConfig& config, const TokenizerConfig& tokenizer_config) {
  if (config.command == "verify") return verify(config);
  if (config.command == "from-nanogpt") return index_files(config);
  const TextOf text(tokenizer_config);
  for (const std::string& prefix : config.prefixes) {
    const IndexedDataset data(prefix);
    text.warn_of_another(prefix);
    if (config.command == "cat")
      print_documents(data, config.from, config.count.value_or(10), text.tokenizer(), std::cout);
    else if (config.json)
      show_json(data, config, text.tokenizer());
    else
      show(data, config, text.tokenizer());
  }
  return 0;
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  return run_app("data", [&] {
    if (argc > 1 && std::string_view(argv[1]) == "cache") {
      run_cache_command({argv + 2, argv + argc}, std::cout);
      return 0;
    }
    DataToolConfig config;
    ShardsCommand shards;
    TokenizerConfig tokenizer;
    Options options("data", "Look into indexed datasets.");
    options.add("Datasets", config)
        .add("Shards", shards)
        .add("Tokenizer, for text in place of ids", tokenizer);
    options
        .epilog(
            "megalith-data inspect corpus_text_document --tokenizer-model tokenizer\n"
            "megalith-data cat corpus_text_document --from 100 --count 5\n"
            "megalith-data verify corpus_text_document\n"
            "megalith-data from-nanogpt train.bin val.bin\n"
            "megalith-data shards --plan corpus/ --shards 20\n"
            "megalith-data shards --missing out/corpus --format slurm\n"
            "\n"
            "With cache as its first word, it writes the indexes that a job of Megatron-LM\n"
            "reads when it starts. The options are the job's: see megalith-data cache --help.\n")
        .environment(tokenizer_variables())
        .files({{"PREFIX.bin, PREFIX.idx", "The dataset: token ids, and where each document begins."},
                {"PREFIX.json", "What made it, and hashes of both, as megalith-preprocess writes it."}});
    if (!parse_options(options, argc, argv)) return 0;
    if (config.command == "shards") return run_shards_command(shards, config.json);
    if (shards.given())
      fail(ErrorKind::kUsage,
           "--plan, --missing, --shards, --shard-by, --text and --format belong to the command shards, not "
           "to ",
           config.command);
    if (config.command == "dedup") return dedup(config);
    return run(config, tokenizer);
  });
}
