#include <string>
#include <vector>

#include "libcore/config/pretrain_config.h"
#include "libcore/dialects/megatron/fates.h"
#include "libcore/options/cli.h"
#include "tests/fuzz/fuzz.h"

/// Reads and checks a command line of megalith-pretrain's options. The input is the words, each on its line.
MEGALITH_FUZZ_TARGET(command_line) {
  using namespace megalith;
  std::vector<std::string> words;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    words.emplace_back(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  PretrainConfig config;
  Options options("pretrain", "Train a model.");
  options.add("Model", config.model).add("Training", config.train).add("Data", config.data);
  fuzz::accept({ErrorKind::kUsage, ErrorKind::kNoInput}, [&] {
    if (!options.read(words)) options.check();
  });
}
