#include "libcore/doctor/doctor.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/plugins/library_folders.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/doctor/check_process.h"
#include "libcore/doctor/disk_checks.h"
#include "libcore/doctor/library_checks.h"
#include "libcore/doctor/machine_checks.h"
#include "libcore/doctor/network_checks.h"
#include "libcore/doctor/trial_run.h"

namespace megalith {
namespace {
using State = Finding::State;

constexpr auto kLongest = std::chrono::milliseconds(4500);  // of all checks, which run side by side

std::vector<CheckProcess> start_checks(const DoctorConfig& config, const std::string& pretrain) {
  std::vector<CheckProcess> checks;
  checks.emplace_back("processor", check_processor);
  checks.emplace_back("memory", check_memory);
  checks.emplace_back("limits", check_limits);
  checks.emplace_back("cache", check_cache);
  checks.emplace_back("shared memory", [] { return check_shared_memory(); });
  checks.emplace_back("plugins", check_plugins);
  checks.emplace_back("GPU", check_gpu);
  checks.emplace_back("network", [&] { return check_network(config.port); });
  checks.emplace_back("disk", [&] { return check_disk(config.save); });
  checks.emplace_back("smallest run", [&] { return check_smallest_run(pretrain); });
  return checks;
}

/// The worst state among the findings of a check.
State worst(const Findings& findings, const std::string& check) {
  State state = State::kGood;
  for (const Finding& one : findings)
    if (one.check == check) state = std::max(state, one.state);
  return state;
}

bool has(const Findings& findings, const std::string& check) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& one) { return one.check == check; });
}

/// Adds what needs one plugin.
void add_purpose(Diagnosis& diagnosis, const PluginFacts& plugin) {
  const std::string check = concat("plugin ", plugin.name);
  bool runs = has(diagnosis.findings, check) && worst(diagnosis.findings, check) == State::kGood;
  if (plugin.name == std::string_view("gloo"))
    runs = runs && worst(diagnosis.findings, "loopback") == State::kGood;
  (runs ? diagnosis.runs : diagnosis.does_not_run).emplace_back(plugin.purpose);
}

std::string line_of(const Finding& one, size_t columns) {
  constexpr size_t kCheckWidth = 22;
  std::string line = one.check;
  line.resize(std::max(line.size() + 1, kCheckWidth), ' ');
  line += concat(name(one.state), ": ", one.text, one.remedy.empty() ? "" : "; " + one.remedy);
  return wrapped(printable(line), columns, std::string(kCheckWidth, ' ')) + '\n';
}

Json strings(const std::vector<std::string>& words) {
  return Json::Array(words.begin(), words.end());
}

}  // namespace

Diagnosis diagnose(const DoctorConfig& config, const std::string& pretrain) {
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  std::vector<CheckProcess> checks = start_checks(config, pretrain);
  Diagnosis diagnosis;
  for (CheckProcess& check : checks)
    for (Finding& found : check.take(deadline)) diagnosis.findings.push_back(std::move(found));
  diagnosis.smallest_run_fails = worst(diagnosis.findings, "smallest run") == State::kBad;
  (diagnosis.smallest_run_fails ? diagnosis.does_not_run : diagnosis.runs)
      .emplace_back("training on the CPU");
  for (const PluginFacts& plugin : kPlugins) add_purpose(diagnosis, plugin);
  return diagnosis;
}

std::string diagnosis_text(const Diagnosis& diagnosis, size_t columns) {
  std::string text;
  for (const Finding& one : diagnosis.findings) text += line_of(one, columns);
  text += wrapped(concat("will run: ", diagnosis.runs.empty() ? "nothing" : join(diagnosis.runs, ", ")),
                  columns, "  ") +
          '\n';
  if (!diagnosis.does_not_run.empty())
    text += wrapped(concat("will not run: ", join(diagnosis.does_not_run, ", ")), columns, "  ") + '\n';
  return text;
}

Json diagnosis_json(const Diagnosis& diagnosis) {
  return Json::Object{{"findings", to_json(diagnosis.findings)},
                      {"runs", strings(diagnosis.runs)},
                      {"does_not_run", strings(diagnosis.does_not_run)}};
}

}  // namespace megalith
