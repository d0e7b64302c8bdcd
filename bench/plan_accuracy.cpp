// bench_plan_accuracy FILE.csv : how far the planner is from measured runs.
//
// The table has a header and one run a row, with the columns layers, hidden, heads, kv_heads, ffn, vocab,
// seq, gpu, gpus, tp, pp, cp, ep, vpp, micro_batch, global_batch, recompute, sp, dist_opt, precision,
// iter_time_s, peak_mem_gb, arch, eval_class. Rows that the planner cannot express (mixtures of experts,
// 8-bit, ZeRO-2/3) are counted and left out. Prints one JSON object a class.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/file.h"
#include "libcore/plan/search.h"

namespace megalith {
namespace {

using Record = std::map<std::string, std::string>;

std::vector<std::string> cells(std::string_view line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (char c : line) {
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted)
      out.emplace_back();
    else if (c != '"' && c != '\r')
      out.back() += c;
  }
  return out;
}

std::vector<Record> load(const std::string& path) {
  const std::vector<std::string> lines = split(read_file(path), '\n');
  const std::vector<std::string> header = cells(lines.at(0));
  std::vector<Record> records;
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> row = cells(lines[i]);
    if (row.size() != header.size()) continue;
    Record& record = records.emplace_back();
    for (size_t k = 0; k < row.size(); ++k) record[header[k]] = row[k];
  }
  return records;
}

double number(const Record& r, const char* column, double otherwise = 0) {
  return parse_double(r.at(column)).value_or(otherwise);
}
int whole(const Record& r, const char* column, int otherwise = 0) {
  return static_cast<int>(number(r, column, otherwise));
}

std::string device_name(std::string gpu) {
  gpu = gpu.substr(0, gpu.find_first_of(" ("));
  for (const auto& [from, to] :
       {std::pair{"A100-", "A100-SXM-"}, {"V100-", "V100-SXM2-"}, {"B200-SXM", "B200"}})
    if (gpu.starts_with(from)) return to + gpu.substr(std::string(from).size());
  if (gpu.starts_with("H100-SXM-96GB")) return "H100-SXM-80GB";
  return gpu;
}

PlanProblem problem(const Record& r) {
  PlanProblem p;
  ModelConfig& m = p.model;
  m.layers = whole(r, "layers");
  m.hidden = whole(r, "hidden");
  m.heads = whole(r, "heads");
  m.query_groups = whole(r, "kv_heads", m.heads);
  m.group_query = m.query_groups != m.heads;
  m.kv_channels = m.hidden / m.heads;
  m.ffn_hidden = whole(r, "ffn");
  m.seq_length = m.max_positions = whole(r, "seq");
  m.vocab_size = whole(r, "vocab");
  if (r.at("arch") == "llama") {
    m.swiglu = m.untied_head = true;
    m.linear_bias = false;
    m.norm = Normalization::kRmsNorm;
    m.position = PositionEmbedding::kRope;
    m.hidden_dropout = m.attention_dropout = 0;
  }
  p.machine = {find_accelerator(device_name(r.at("gpu"))), whole(r, "gpus"), std::min(8, whole(r, "gpus"))};
  p.global_batch = whole(r, "global_batch");
  return p;
}

Candidate candidate(const Record& r) {
  Candidate c;
  c.tensor = whole(r, "tp", 1);
  c.pipeline = whole(r, "pp", 1);
  c.context = whole(r, "cp", 1);
  c.chunks = whole(r, "vpp", 1);
  c.micro_batch = whole(r, "micro_batch", 1);
  c.sequence = r.at("sp") == "y" && c.tensor > 1;
  c.distributed_optimizer = r.at("dist_opt") == "y";
  c.recompute = r.at("recompute") == "full" ? Recompute::kFull : Recompute::kNone;
  return c;
}

bool expressible(const Record& r) {
  const std::string& precision = r.at("precision");
  return (r.at("arch") == "gpt" || r.at("arch") == "llama") && (precision == "bf16" || precision == "fp16") &&
         !r.at("dist_opt").starts_with("zero") && !r.at("dist_opt").starts_with("fsdp") &&
         number(r, "heads") > 0 && number(r, "ffn") > 0 && number(r, "micro_batch") > 0 &&
         number(r, "global_batch") > 0;
}

struct Errors {
  std::vector<double> time, memory;  // predicted / measured
  int out_of_memory = 0, called_right = 0, left_out = 0;
};

void score(const Record& r, Errors& errors) {
  if (!expressible(r)) {
    ++errors.left_out;
    return;
  }
  const PlanProblem p = problem(r);
  Candidate c = candidate(r);
  if (complete(p, c)) {
    ++errors.left_out;
    return;
  }
  const WorstStage worst = worst_stage(p, c);
  const bool fits = worst.bill.device() <= p.machine.device.memory;
  if (r.at("OOM") == "y" || number(r, "iter_time_s") > 0) {
    ++errors.out_of_memory;
    errors.called_right += fits != (r.at("OOM") == "y");
  }
  if (const double seconds = number(r, "iter_time_s"); seconds > 0)
    errors.time.push_back(step_time(p, c).total() / seconds);
  if (const double gb = number(r, "peak_mem_gb"); gb > 0) {
    const bool allocated = r.at("mem_kind") == "max_allocated" || r.at("mem_kind") == "analytic";
    errors.memory.push_back((allocated ? worst.bill.allocated() : worst.bill.device()) / 1e9 / gb);
  }
}

std::string summary(std::vector<double> ratios) {
  if (ratios.empty()) return "null";
  double error = 0;
  for (double ratio : ratios) error += std::fabs(ratio - 1) / static_cast<double>(ratios.size());
  std::sort(ratios.begin(), ratios.end());
  return concat("{\"rows\": ", ratios.size(), ", \"mape\": ", format_fixed(100 * error, 1),
                ", \"median_ratio\": ", format_fixed(ratios[ratios.size() / 2], 3), "}");
}

int main_of(const std::string& path) {
  std::map<std::string, Errors> classes;
  for (const Record& record : load(path)) score(record, classes[record.at("eval_class")]);
  for (const auto& [name, errors] : classes)
    std::printf(
        "{\"class\": \"%s\", \"time\": %s, \"memory\": %s, \"fit_called_right\": \"%d of %d\", \"left_out\": "
        "%d}\n",
        name.c_str(), summary(errors.time).c_str(), summary(errors.memory).c_str(), errors.called_right,
        errors.out_of_memory, errors.left_out);
  return 0;
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: bench_plan_accuracy FILE.csv\n");
    return 64;
  }
  return megalith::main_of(argv[1]);
}
