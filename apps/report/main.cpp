#include <string>
#include <vector>

#include <unistd.h>

#include "apps/app.h"
#include "libcore/base/terminal.h"
#include "libcore/io/files/file.h"
#include "libcore/io/run/run_files.h"
#include "libcore/io/streams/standard_streams.h"
#include "libcore/options/cli.h"
#include "libcore/train/log/comparison.h"
#include "libcore/train/log/report.h"

namespace megalith {
namespace {

struct ReportConfig {
  std::vector<std::string> runs;
  std::string html;

  template <class V>
  void fields(V&& v) {
    v("run", runs, "Files of figures that --log-json or --report wrote, of runs that ended or are running.",
      positional(), required(), metavar("RUN.jsonl"));
    v("html", html, "Write a page with charts there.", metavar("FILE"));
  }
};

void check_files(const ReportConfig& config) {
  RunFiles files;
  for (const std::string& run : config.runs) files.reads("RUN.jsonl", run);
  files.writes("--html", config.html, OutputKind::kStream);
  files.check();
}

void report(const ReportConfig& config) {
  check_files(config);
  const std::vector<RunHistory> runs = read_named_runs(config.runs);
  if (!config.html.empty())
    write_file(config.html, runs.size() == 1 ? run_page(runs.front(), 0) : comparison_page(runs),
               OutputKind::kStream);
  write_stdout(comparison_text(runs, columns_of(STDOUT_FILENO)));
  flush_stdout();
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  return run_app("report", [&] {
    ReportConfig config;
    Options options("report", "Compare training runs: a table, and a page with their losses.");
    options.add("Runs", config)
        .epilog(
            "megalith-report small.jsonl large.jsonl --html compared.html\n"
            "megalith-report report.html.jsonl\n")
        .files({{"RUN.jsonl", "The figures of a run, one step a line."}});
    if (!parse_options(options, argc, argv)) return 0;
    report(config);
    return 0;
  });
}
