#include "libcore/doctor/machine_checks.h"

#include <algorithm>
#include <optional>

#include <sys/resource.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/machine/isa.h"
#include "libcore/base/machine/proc.h"
#include "libcore/base/refusals.h"
#include "libcore/base/text.h"
#include "libcore/doctor/disk_checks.h"
#include "libcore/io/cache/build_cache.h"

namespace megalith {
namespace {
using State = Finding::State;

constexpr double kGiB = 1 << 30;

/// The limit of this process; nothing if there is none.
std::optional<double> limit(__rlimit_resource resource) {
  rlimit value{};
  if (::getrlimit(resource, &value) != 0 || value.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<double>(value.rlim_cur);
}

void check_count(Findings& findings, const char* what, std::optional<double> found, double wanted,
                 const char* option) {
  if (!found || *found >= wanted) return;
  findings.push_back(
      {.check = "limits",
       .state = State::kWarning,
       .text = concat(what, ": ", static_cast<int64_t>(*found), ", wanted ", static_cast<int64_t>(wanted)),
       .remedy = concat("ulimit ", option, " ", static_cast<int64_t>(wanted))});
}

}  // namespace

Findings check_processor() {
  return {{.check = "processor",
           .state = State::kGood,
           .text = concat(processor_name(), ", ", usable_cpus(), " CPUs for this process, kernels for ",
                          name(chosen_isa())),
           .remedy = {}}};
}

Findings check_memory() {
  const auto all = static_cast<double>(meminfo("MemTotal").value_or(0)),
             available = static_cast<double>(available_memory().value_or(0));
  Findings findings = {
      {.check = "memory",
       .state = available < kGiB ? State::kWarning : State::kGood,
       .text = concat(format_bytes(available), " of ", format_bytes(all), " are available"),
       .remedy = available < kGiB
                     ? "end other programs, or train a smaller model (--dry-run says what a run needs)"
                     : ""}};
  if (const auto group = static_cast<double>(group_memory_limit().value_or(0)); group > 0 && group < all)
    findings.push_back({.check = "memory",
                        .state = group < kGiB ? State::kWarning : State::kGood,
                        .text = concat("the control group of this process has ", format_bytes(group)),
                        .remedy = group < kGiB ? "raise the container's or the job's memory" : ""});
  if (const auto space = limit(RLIMIT_AS))
    findings.push_back({.check = "memory",
                        .state = State::kWarning,
                        .text = concat("ulimit -v leaves ", format_bytes(*space), " of addresses"),
                        .remedy = "ulimit -v unlimited"});
  return findings;
}

Findings check_limits() {
  Findings findings;
  check_count(findings, "open files", limit(RLIMIT_NOFILE), 1024, "-n");
  check_count(findings, "processes and threads", limit(RLIMIT_NPROC), 1024, "-u");
  try {
    check_stack_limit();
  } catch (const Error& error) {
    findings.push_back(finding_of("limits", State::kBad, error.what()));
  }
  if (findings.empty())
    findings.push_back(
        {.check = "limits", .state = State::kGood, .text = "files, processes, stacks", .remedy = {}});
  return findings;
}

Findings check_cache() {
  const std::string folder = cache_folder();
  const std::string remedy =
      "set MEGALITH_CACHE_DIR to a folder that can be written; without one, runs compute "
      "again what they could have kept";
  if (folder.empty())
    return {{.check = "cache",
             .state = State::kWarning,
             .text = "there is no folder for it: none of MEGALITH_CACHE_DIR, XDG_CACHE_HOME and HOME is set",
             .remedy = remedy}};
  const std::string found = existing_folder(folder);
  if (::access(found.c_str(), W_OK) != 0)
    return {{.check = "cache",
             .state = State::kWarning,
             .text = concat(found, " cannot be written"),
             .remedy = remedy}};
  return {{.check = "cache", .state = State::kGood, .text = folder, .remedy = {}}};
}

Findings check_shared_memory(const std::string& folder) {
  const bool writable = ::access(folder.c_str(), W_OK) == 0;
  return {{.check = "shared memory",
           .state = State::kGood,
           .text = concat(folder, writable ? " can be written" : " is not there", "; no run needs it"),
           .remedy = {}}};
}

}  // namespace megalith
