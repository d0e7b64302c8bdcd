#include "libcore/config/data_config.h"

#include "libcore/base/text.h"

namespace megalith {

/// Scripts that keep their options in an array give --split with its quotes; Megatron looks for numbers
/// alone.
void DataConfig::finish() {
  std::erase_if(split, [](char c) { return c == '\'' || c == '"'; });
}

void DataConfig::validate(Problems& problems) const {
  const std::vector<std::string> parts = megalith::split(split, ',');
  double sum = 0;
  bool numbers = parts.size() <= 3;
  for (const std::string& part : parts) {
    const auto weight = parse_double(trim(part));
    numbers = numbers && weight && *weight >= 0;
    sum += weight.value_or(0);
  }
  if (!numbers || !(sum > 0))
    problems.add("--split ", quote(split), ": wanted up to three weights, such as \"969,30,1\"");
  const auto refuse = [&](bool given, const char* option, const char* instead) {
    if (given) problems.add(option, " is not supported; ", instead);
  };
  refuse(reset_position_ids, "--reset-position-ids", "leave it out: positions run through the sample");
  refuse(reset_attention_mask, "--reset-attention-mask", "leave it out: attention sees the whole sample");
  refuse(eod_mask_loss, "--eod-mask-loss", "leave it out: every token counts in the loss");
  const bool one_path = !data_path.empty();
  if (one_path + has_own_paths() + mock > 1)
    problems.add(
        "--data-path, --train-data-path (with --valid-data-path and --test-data-path) and --mock-data "
        "contradict each other; give one of them");
  if (has_own_paths() && train_path.empty())
    problems.add("--valid-data-path and --test-data-path need --train-data-path");
}

}  // namespace megalith
