// bench_plan_accuracy FILE.csv [--predictions OUT.csv] [--coefficients FILE | --coefficients-by-class FOLDER]
//
// Predicts the step time and the memory of every run in a table and, where the table has measurements, prints
// the errors. Predictions do not depend on any measurement. `fullness` in the predictions is the memory that
// a device needs, as a share of what it has. --list prints the coefficients. With --coefficients-by-class, a
// row of class C is predicted with FOLDER/C.txt if that file exists; tools/plan_fit has fitted these
// coefficients to the rows of all other classes. Its interval is then that of runs of which none was fitted.
//
// A row that cannot be priced, due to its device or a missing or invalid size, gets an empty line in the
// predictions; stderr names an unknown device.
//
// Rows of mixtures of experts are priced if their model is one of docs/mixtures.json, whose published shape
// supplies what the columns do not say.
//
// --commands prints, for each row, the command of megalith-autoplan that plans it.
//
// The table has a header and one run a row. These columns are read: model (one of docs/mixtures.json),
// layers, hidden, heads, kv_heads, ffn, vocab, seq, gpu, gpus, tp, pp, cp, ep, vpp, micro_batch,
// global_batch, recompute, sp, dist_opt, precision, framework, arch, attn_kernel, mem_kind, node_gpus,
// nic_gbps, features, eval_class; to print errors also iter_time_s and peak_mem_gb.
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "bench/plan_rows/run_rows.h"
#include "libcore/base/error.h"
#include "libcore/base/figures/quantile.h"
#include "libcore/base/shell_word.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/plan/price/memory_estimate.h"
#include "libcore/plan/price/time_model.h"

namespace megalith {
namespace {

struct Prediction {
  double seconds = 0;
  Interval range = {};
  double gigabytes = 0;
  double fullness = 0;  // the memory needed, as a share of what the device has
  bool fits() const { return fullness <= 1; }
};

/// Coefficients, and whether they were fitted without the runs that they predict.
struct Fit {
  Coefficients coefficients;
  bool left_out = false;
};

double of_kind(const MemoryEstimate& estimate, const std::string& kind) {
  if (kind == "analytic")
    return estimate.parameters + estimate.gradients + estimate.optimizer + estimate.activations;
  if (kind == "max_allocated") return estimate.allocated();
  return kind == "max_reserved" ? estimate.reserved() : estimate.device();
}

Prediction predict(const PlanProblem& p, const Candidate& c, const std::string& kind, const Fit& fit) {
  const LayerPrice price = price_layer(p, shape_of(c));
  const Layout layout = layout_of(p, c, price);
  const WorstStage worst = worst_stage(p, c, price, layout);
  const double seconds = step_time(p, c, price, layout).total();
  return {seconds, fit.left_out ? unseen_interval(p, seconds) : interval(p, seconds),
          of_kind(worst.estimate, kind) / 1e9, worst.estimate.needed() / usable_memory(p)};
}

/// For a row without a micro-batch: the best prediction over the micro-batches 1, 2, 4 and 8 and, if the row
/// gives no number of model chunks either, over the possible numbers of chunks.
Prediction predict_best(const RunRow& r, const PlanProblem& p, const Fit& fit) {
  Prediction best;
  for (int micro : {1, 2, 4, 8}) {
    RunRow row = r;
    row["micro_batch"] = std::to_string(micro);
    const int pipeline = whole_in(r, "pp", 1), per_stage = p.model.layers / pipeline;
    for (int chunks = 1; chunks <= (cell(r, "vpp").empty() && pipeline > 1 ? per_stage : 1); ++chunks) {
      Candidate c = candidate_of(row, p);
      if (cell(r, "vpp").empty()) c.chunks = chunks;
      if (per_stage % c.chunks != 0 || c.microbatches % (c.chunks > 1 ? pipeline : 1) != 0) continue;
      if (c.microbatches * c.micro_batch * c.data != c.global_batch) continue;
      const Prediction one = predict(p, c, cell(r, "mem_kind"), fit);
      const bool better = one.fits() != best.fits() ? one.fits() : one.seconds < best.seconds;
      if (best.seconds == 0 || better) best = one;
    }
  }
  return best;
}

Prediction predict(const RunRow& r, const Fit& fit) {
  if (!expressible(r)) return {};
  PlanProblem p = problem_of(r);  // throws kUsage for a device that is not in docs/gpus.yaml
  p.coefficients = &fit.coefficients;
  if (number_in(r, "micro_batch") > 0 && number_in(r, "global_batch") > 0)
    return predict(p, candidate_of(r, p), cell(r, "mem_kind"), fit);
  return number_in(r, "global_batch") > 0 ? predict_best(r, p, fit) : Prediction{};
}

/// Predicts one row. A row that cannot be priced is left empty, and the others are still priced. If a file of
/// the program cannot be read, the program ends, since every row would be empty.
Prediction predict_or_say(size_t row, const RunRow& r, const Fit& fit) {
  try {
    return predict(r, fit);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUsage && error.kind() != ErrorKind::kData) throw;
    std::fprintf(stderr, "row %zu is left empty: %s\n", row, error.what());
    return {};
  }
}

class CoefficientSets {
 public:
  void one(const std::string& file) { all_ = read_coefficients(file, all_); }
  void folder(const std::string& path) { folder_ = path; }
  const Fit& of(const std::string& eval_class) {
    const auto known = by_class_.find(eval_class);
    if (known != by_class_.end()) return known->second;
    const std::string file = folder_ + "/" + eval_class + ".txt";
    const bool there = !folder_.empty() && file_exists(file);
    const Fit fit{.coefficients = there ? read_coefficients(file, all_) : all_, .left_out = there};
    return by_class_.emplace(eval_class, fit).first->second;
  }

 private:
  Coefficients all_ = fitted_coefficients();
  std::string folder_;
  std::map<std::string, Fit> by_class_;
};

std::string csv_line(size_t row, const Prediction& x) {
  if (x.seconds <= 0) return concat(row, ",,,,,,\n");
  return concat(row, ',', format_double(x.seconds), ',', format_double(x.gigabytes), ',',
                x.fits() ? 'y' : 'n', ',', format_double(x.range.low), ',', format_double(x.range.high), ',',
                format_double(x.fullness), '\n');
}

struct Errors {
  std::vector<double> time, memory;  // predicted / measured
};

std::string summary(const std::vector<double>& ratios) {
  if (ratios.empty()) return "null";
  double error = 0;
  for (double ratio : ratios) error += std::fabs(ratio - 1) / static_cast<double>(ratios.size());
  return concat("{\"rows\": ", ratios.size(), ", \"mape\": ", format_fixed(100 * error, 1),
                ", \"median_ratio\": ", format_fixed(median_of_few(ratios), 3), "}");
}

int main_of(const std::string& table, const std::string& output, CoefficientSets& sets) {
  std::string csv = "row,iter_time_s,memory_gb,fits,iter_time_lo_s,iter_time_hi_s,fullness\n";
  std::map<std::string, Errors> classes;
  const std::vector<RunRow> records = read_run_rows(table);
  for (size_t i = 0; i < records.size(); ++i) {
    const RunRow& r = records[i];
    const Prediction x = predict_or_say(i, r, sets.of(cell(r, "eval_class")));
    csv += csv_line(i, x);
    if (x.seconds <= 0) continue;
    Errors& errors = classes[cell(r, "eval_class")];
    if (number_in(r, "iter_time_s") > 0) errors.time.push_back(x.seconds / number_in(r, "iter_time_s"));
    if (number_in(r, "peak_mem_gb") > 0) errors.memory.push_back(x.gigabytes / number_in(r, "peak_mem_gb"));
  }
  if (!output.empty()) write_file(output, csv);
  for (const auto& [name, errors] : classes)
    std::printf("{\"class\": \"%s\", \"time\": %s, \"memory\": %s}\n", name.c_str(),
                summary(errors.time).c_str(), summary(errors.memory).c_str());
  return 0;
}

/// The command of megalith-autoplan for each row; an empty line where there is none.
int print_commands(const std::string& table) {
  for (const RunRow& r : read_run_rows(table)) {
    std::string line;
    if (const auto words = command_of(r)) {
      line = "megalith-autoplan";
      for (const std::string& word : *words) line += ' ' + shell_word(word);
    }
    std::puts(line.c_str());
  }
  return 0;
}

int list_coefficients() {
  std::puts("name,unit,prior,width,low,high,fitted,meaning");
  for (const CoefficientInfo& info : coefficient_table())
    std::printf("%s,%s,%g,%g,%g,%g,%g,\"%s\"\n", info.name, info.unit, info.prior, info.width, info.low,
                info.high, fitted_coefficients().*info.member, info.meaning);
  return 0;
}

int usage() {
  std::fprintf(stderr,
               "usage: bench_plan_accuracy FILE.csv [--predictions OUT.csv] [--coefficients FILE | "
               "--coefficients-by-class FOLDER]\n       bench_plan_accuracy --list\n       "
               "bench_plan_accuracy --commands FILE.csv\n");
  return 64;
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  if (argc == 2 && std::string(argv[1]) == "--list") return list_coefficients();
  const bool commands = argc == 3 && std::string(argv[1]) == "--commands";
  if (!commands && (argc < 2 || argc % 2 != 0)) return usage();
  try {
    if (commands) return print_commands(argv[2]);
    std::string output;
    CoefficientSets sets;
    for (int i = 2; i + 1 < argc; i += 2) {
      const std::string option = argv[i];
      if (option == "--predictions")
        output = argv[i + 1];
      else if (option == "--coefficients")
        sets.one(argv[i + 1]);
      else if (option == "--coefficients-by-class")
        sets.folder(argv[i + 1]);
      else
        return usage();
    }
    return main_of(argv[1], output, sets);
  } catch (const Error& e) {
    std::fprintf(stderr, "bench_plan_accuracy: %s\n", e.what());
    return exit_code(e.kind());
  }
}
