#pragma once

#include <optional>
#include <string>

#include "libcore/generate/run_generate.h"
#include "libcore/options/cli.h"

namespace megalith {

/// Keys of a MindFormers run file (`run_distribute.sh TABLE FILE.yaml RANGE predict N`) that mean something
/// here under another form. The others are translate_mindformers()'s.
struct MindFormersOptions {
  std::optional<std::string> run_mode;
  std::optional<bool> do_sample;

  template <class V>
  void fields(V&& v) {
    v("run_mode", run_mode, "A MindFormers file's mode: predict.", unlisted());
    v("do_sample", do_sample,
      "For a MindFormers file: false is temperature 0, true is 1 if none is given; "
      "--temperature on the command line comes before it.",
      unlisted());
  }
  void validate(Problems&) const;
  /// Sets what these keys mean. An option that is given, there or in the file, comes first; but do_sample:
  /// false yields only to the command line.
  void apply(GenerateConfig& config, const Options& options) const;
};

}  // namespace megalith
