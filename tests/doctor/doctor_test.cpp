#include "libcore/doctor/doctor.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {
using State = Finding::State;

const Diagnosis kDiagnosis = {.findings = {{"memory", State::kGood, "20 GiB", ""},
                                           {"disk", State::kBad, "/d: cannot be written", "remove files"}},
                              .runs = {"training on the CPU", "YAML files"},
                              .does_not_run = {"--device cuda"},
                              .smallest_run_fails = false};

TEST(Diagnosis, IsATextWithALineForEachFinding) {
  EXPECT_EQ(diagnosis_text(kDiagnosis, 80),
            "memory                ok: 20 GiB\n"
            "disk                  bad: /d: cannot be written; remove files\n"
            "will run: training on the CPU, YAML files\n"
            "will not run: --device cuda\n");
}

TEST(Diagnosis, IsJson) {
  const Json json = diagnosis_json(kDiagnosis);
  EXPECT_EQ(findings_of(json["findings"]), kDiagnosis.findings);
  EXPECT_EQ(json["runs"].dump(), R"(["training on the CPU", "YAML files"])");
  EXPECT_EQ(json["does_not_run"].dump(), R"(["--device cuda"])");
}

}  // namespace
}  // namespace megalith
