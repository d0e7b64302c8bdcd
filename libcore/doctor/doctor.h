#pragma once

#include <string>
#include <vector>

#include "libcore/doctor/finding.h"
#include "libcore/options/fields.h"

namespace megalith {

/// The options of megalith-doctor.
struct DoctorConfig {
  std::string save = ".";
  int port = 29500;
  bool json = false;

  template <class V>
  void fields(V&& v) {
    v("save", save, "The folder that --save of a run will name: its disk is measured.", metavar("DIR"),
      default_text("the working folder"));
    v("master-port", port, "The port at which ranks will meet.", between(1, 65535));
    v("json", json,
      "Print the findings as JSON. The exit code is 69 if the smallest run on the CPU fails, else 0.");
  }
};

/// What is known of this machine, and what of it runs here.
struct Diagnosis {
  Findings findings;
  std::vector<std::string> runs, does_not_run;
  bool smallest_run_fails = false;
};

/// Checks this machine for at most five seconds. `pretrain` is the path of megalith-pretrain.
Diagnosis diagnose(const DoctorConfig& config, const std::string& pretrain);

/// A line for each finding, its remedy below it, and what runs and does not.
std::string diagnosis_text(const Diagnosis& diagnosis, size_t columns);
Json diagnosis_json(const Diagnosis& diagnosis);

}  // namespace megalith
