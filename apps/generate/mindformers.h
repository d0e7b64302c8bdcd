#pragma once

#include <optional>
#include <string>

#include "libcore/generate/run_generate.h"
#include "libcore/options/cli.h"

namespace megalith {

/// Keys of a MindFormers run file (`run_distribute.sh TABLE FILE.yaml RANGE predict N`) that have a meaning
/// here, but in another form. translate_mindformers() handles the others.
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
  /// Sets the temperature that do_sample implies: 0 for false, 1 for true. A temperature on the command line
  /// takes precedence over do_sample; one in the file takes precedence only over `do_sample: true`.
  void apply(GenerateConfig& config, const Options& options) const;
};

}  // namespace megalith
