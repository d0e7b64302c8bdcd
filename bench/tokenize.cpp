// bench_tokenize FILE [KEY] [VOCAB.json MERGES.txt | TOKENIZER.json]: bytes of text per second turned into
// ids in memory, on one thread. FILE is a text or, with KEY (not "-"), loose JSON whose texts are read before
// the clock starts. Prints one JSON object a line: the machine, then, for each instruction set, loading the
// tokenizer, the pretokenizer alone, a first pass (with empty caches) and the best of five more. Times are
// the thread's processor time.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/machine/isa.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/document_json.h"
#include "libcore/json/json.h"
#include "libcore/text/formats/make_tokenizer.h"
#include "libcore/text/pretokenize/pretokenizer.h"

namespace megalith {
namespace {

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

template <class Call>
double seconds(Call&& call) {
  const double start = processor_seconds();
  call();
  return processor_seconds() - start;
}

std::string processor() {
  for (const std::string& line : split(read_file("/proc/cpuinfo"), '\n'))
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

struct Texts {
  std::string file;
  std::vector<std::string> texts;
  size_t bytes = 0;
};

Texts read_texts(const std::string& path, const std::string& key) {
  Texts out{.file = read_file(path), .texts = {}};
  if (key.empty() || key == "-") {
    out.texts.push_back(out.file);
  } else {
    DocumentParser parser({key});
    std::string copy = out.file;
    for (size_t at = 0; at < copy.size();) {
      const size_t end = std::min(copy.find('\n', at), copy.size());
      if (!parser.parse({copy.data() + at, end - at}))
        for (std::string_view text : parser.texts(0)) out.texts.emplace_back(text);
      at = end + 1;
    }
  }
  for (const std::string& text : out.texts) out.bytes += text.size();
  return out;
}

void measure(const Texts& in, const TokenizerFiles& files, Isa isa) {
  setenv("MEGALITH_ISA", name(isa), 1);
  std::unique_ptr<Tokenizer> tokenizer;
  Json line = Json::object();
  line.set("isa", name(isa));
  line.set("load_ms", 1e3 * seconds([&] { tokenizer = make_tokenizer(files); }));
  const auto rate = [&](const char* what, double time) {
    line.set(concat(what, "_text_MB_s"), static_cast<double>(in.bytes) / 1e6 / time);
    line.set(concat(what, "_file_MB_s"), static_cast<double>(in.file.size()) / 1e6 / time);
  };
  size_t pretokens = 0;
  const FindPretokens find = pretokenizer(PretokenPattern::kGpt2);
  rate("pretokens", seconds([&] {
         std::array<uint32_t, 2048> ends;
         for (std::string_view text : in.texts)
           while (!text.empty()) {
             const size_t count = find(text, ends);
             pretokens += count;
             text.remove_prefix(ends[count - 1]);
           }
       }));
  const auto pass = [&] {
    IdBuffer ids(tokenizer->vocab_size() <= 65536 ? 2 : 4);
    size_t count = 0;
    for (const std::string& text : in.texts) {
      tokenizer->encode_to(text, ids);
      if (ids.size() < 100'000) continue;
      count += ids.size();
      ids.clear();
    }
    return count + ids.size();
  };
  size_t ids = 0;
  rate("first", seconds([&] { ids = pass(); }));
  double best = 1e9;
  for (int i = 0; i < 5; ++i) best = std::min(best, seconds(pass));
  rate("best", best);
  line.set("pretokens", static_cast<int64_t>(pretokens));
  line.set("ids", static_cast<int64_t>(ids));
  std::printf("%s\n", line.dump().c_str());
}

int bench_tokenize(const std::vector<std::string>& args) {
  const auto arg = [&](size_t i) { return i < args.size() ? args[i] : std::string(); };
  if (args.empty()) fail(ErrorKind::kUsage, "wanted FILE [KEY] [VOCAB.json MERGES.txt | TOKENIZER.json]");
  TokenizerFiles files;
  files.type = arg(3).empty() ? "HuggingFaceTokenizer" : "GPT2BPETokenizer";
  (arg(3).empty() ? files.model : files.vocab) = arg(2);
  files.merges = arg(3);
  const Texts in = read_texts(args[0], arg(1));
  Json machine = Json::object();
  machine.set("processor", processor());
  machine.set("processors", static_cast<int64_t>(std::thread::hardware_concurrency()));
  machine.set("file", args[0]);
  machine.set("file_bytes", static_cast<int64_t>(in.file.size()));
  machine.set("texts", static_cast<int64_t>(in.texts.size()));
  machine.set("text_bytes", static_cast<int64_t>(in.bytes));
  std::printf("%s\n", machine.dump().c_str());
  for (Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kGeneric})
    if (isa <= best_isa()) measure(in, files, isa);
  return 0;
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  try {
    return megalith::bench_tokenize(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const megalith::Error& error) {
    std::fprintf(stderr, "bench_tokenize: error: %s\n", error.what());
    return megalith::exit_code(error.kind());
  }
}
