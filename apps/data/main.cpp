#include <iostream>
#include <memory>
#include <optional>

#include "apps/app.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/config/cli.h"
#include "libcore/config/tokenizer_config.h"
#include "libcore/data/dataset_tool.h"

namespace megalith {
namespace {

struct DataToolConfig {
  std::string command;
  std::vector<std::string> prefixes;
  int64_t from = 0, count = 10, frequent = 10;

  template <class V>
  void fields(V&& v) {
    v("command", command,
      "What to do: inspect (type, counts, sidecar), verify (structure and hashes), cat (documents), stats.",
      positional(), required(), one_of({"inspect", "verify", "cat", "stats"}));
    v("prefix", prefixes, "Datasets, without .bin and .idx.", positional(), required(), metavar("PREFIX"));
    v("from", from, "First document of cat.", at_least(0));
    v("count", count, "Documents of cat.", at_least(0));
    v("frequent", frequent, "Most frequent ids of stats.", at_least(0));
  }
};

/// The tokenizer whose text cat prints; none given: ids are printed.
std::unique_ptr<Tokenizer> tokenizer_of(const TokenizerConfig& config) {
  if (config.type.empty()) return nullptr;
  return make_tokenizer(
      {.type = config.type, .vocab = config.vocab, .merges = config.merges, .model = config.model});
}

/// Verifies all; the exit code is that of the first failure.
int verify(const std::vector<std::string>& prefixes) {
  int code = 0;
  for (const std::string& prefix : prefixes) {
    try {
      const Verified what = verify_dataset(prefix);
      std::cout << prefix << ": "
                << (what == Verified::kContent ? "content as written"
                                               : "structure sound; no hashes to compare content with")
                << '\n';
    } catch (const Error& error) {
      log("data: error: ", error.what());
      if (code == 0) code = exit_code(error.kind());
    }
  }
  return code;
}

int run(const DataToolConfig& config, const TokenizerConfig& tokenizer_config) {
  if (config.command == "verify") return verify(config.prefixes);
  const std::unique_ptr<Tokenizer> tokenizer = tokenizer_of(tokenizer_config);
  for (const std::string& prefix : config.prefixes) {
    if (config.command == "inspect")
      std::cout << describe_dataset(prefix).dump(2) << '\n';
    else if (config.command == "stats")
      std::cout << dataset_statistics(IndexedDataset(prefix), static_cast<size_t>(config.frequent)).dump(2)
                << '\n';
    else
      print_documents(IndexedDataset(prefix), config.from, config.count, tokenizer.get(), std::cout);
  }
  return 0;
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  using namespace megalith;
  return run_app("data", [&] {
    DataToolConfig config;
    TokenizerConfig tokenizer;
    Options options("data", "Look into indexed datasets.");
    options.add("Datasets", config).add("Tokenizer, for the text of cat", tokenizer);
    options.epilog("megalith-data verify corpus_text_document\n");
    if (!parse_options(options, argc, argv)) return 0;
    return run(config, tokenizer);
  });
}
