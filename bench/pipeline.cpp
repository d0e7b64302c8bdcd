// bench_pipeline FILE KEY PREFIX: what megalith-preprocess costs apart from its tokenizer. FILE is loose
// JSON. Prints one JSON object a line with the best of seven runs, in MB of the file per second: first for
// reading its lines; then, for each instruction set, for reading and parsing them; then, with a tokenizer
// that only writes one id for four bytes, for all of preprocess() to PREFIX_KEY_document.{bin,idx} on the
// disk, with one worker and with two. "processor" is the time of all threads, "wall" the elapsed time.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/machine/isa.h"
#include "libcore/base/process.h"
#include "libcore/data/preprocess/preprocess.h"
#include "libcore/io/files/file.h"
#include "libcore/io/streams/line_reader.h"
#include "libcore/json/document_json.h"
#include "libcore/json/json.h"

namespace megalith {
namespace {

constexpr int kTurns = 7;

/// Writes one id for every four bytes, which is about GPT-2's ratio on English, and does not look at the
/// text.
class FourBytesTokenizer : public Tokenizer {
 public:
  int vocab_size() const override { return 50257; }
  int eod() const override { return 50256; }
  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override {
    ids.resize(ids.size() + utf8.size() / 4);
  }
  void encode_to(std::string_view utf8, IdBuffer& out) const override {
    uint16_t* const ids = out.extend<uint16_t>(utf8.size() / 4);
    out.finish(std::fill_n(ids, utf8.size() / 4, uint16_t{1}));
  }
  std::string decode(std::span<const int32_t>) const override { return {}; }
  std::string name() const override { return "FourBytesTokenizer"; }
  std::string hash() const override { return "none"; }
};

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Prints the rate of `call`, from the fastest of its runs.
template <class Call>
void measure(const std::string& what, uint64_t bytes, const Call& call) {
  double wall = 1e9, processor = 1e9;
  for (int turn = 0; turn < kTurns; ++turn) {
    const auto start = std::chrono::steady_clock::now();
    const double before = processor_seconds();
    call();
    processor = std::min(processor, processor_seconds() - before);
    wall = std::min(wall, seconds_since(start));
  }
  const double megabytes = static_cast<double>(bytes) / 1e6;
  Json line = Json::object();
  line.set("what", what);
  line.set("wall_ms", 1e3 * wall);
  line.set("processor_ms", 1e3 * processor);
  line.set("processor_MB_s", megabytes / processor);
  line.set("wall_MB_s", megabytes / wall);
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

template <class Take>
void read_lines(const std::string& path, const Take& take) {
  LineReader reader(path, {.bytes = size_t{1} << 18});
  LineBatch batch;
  while (reader.next(batch, [](size_t) {})) take(batch);
}

int bench_pipeline(const std::vector<std::string>& args) {
  if (args.size() != 3) fail(ErrorKind::kUsage, "wanted FILE KEY PREFIX");
  const std::string &path = args[0], &key = args[1];
  const uint64_t bytes = file_size(path);
  measure("read", bytes, [&] { read_lines(path, [](LineBatch&) {}); });
  for (const Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kGeneric}) {
    if (isa > best_isa()) continue;
    setenv("MEGALITH_ISA", name(isa), 1);
    measure(concat("read and parse, ", name(isa)), bytes, [&] {
      DocumentParser parser({key});
      read_lines(path, [&](LineBatch& batch) {
        for (size_t i = 0; i < batch.lines(); ++i)
          if (const auto problem = parser.parse(batch.line(i)))
            fail(ErrorKind::kData, path, ":", batch.place(i, problem->byte).line, ": ", problem->detail);
      });
    });
  }
  unsetenv("MEGALITH_ISA");
  const FourBytesTokenizer tokenizer;
  PreprocessConfig config;
  config.inputs = {path};
  config.json_keys = {key};
  config.output_prefix = args[2];
  config.log_interval = INT64_MAX / 2;
  for (const int workers : {1, 2}) {
    config.workers = workers;
    measure(concat("preprocess without a tokenizer, workers ", workers), bytes,
            [&] { preprocess(config, tokenizer); });
  }
  return 0;
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  try {
    return megalith::bench_pipeline(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const megalith::Error& error) {
    std::fprintf(stderr, "bench_pipeline: error: %s\n", error.what());
    return megalith::exit_code(error.kind());
  }
}
