#include "libcore/convert/convert_options.h"

#include "libcore/base/text.h"

namespace megalith {

std::optional<uint64_t> parse_size(std::string_view text) {
  struct Unit {
    std::string_view name;
    uint64_t bytes;
  };
  constexpr Unit kUnits[] = {{"KiB", uint64_t{1} << 10},
                             {"MiB", uint64_t{1} << 20},
                             {"GiB", uint64_t{1} << 30},
                             {"KB", 1000},
                             {"MB", 1'000'000},
                             {"GB", 1'000'000'000},
                             {"B", 1},
                             {"", 1}};
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    const auto number = parse_int(text.substr(0, text.size() - unit.name.size()));
    uint64_t bytes = 0;
    if (!number || *number < 1 || __builtin_mul_overflow(static_cast<uint64_t>(*number), unit.bytes, &bytes))
      return {};
    return bytes;
  }
  return {};
}

void ConvertConfig::validate(Problems& problems) const {
  if (input.size() > 2 || (input.size() == 2 && input[0] != "inspect"))
    problems.add("wanted one input, found ", quote(input[0]), " and ", quote(input[1]));
  if (input.size() == 1 && input[0] == "inspect")
    problems.add("inspect needs a path; wanted: inspect PATH, a model's file or folder");
  if (!parse_size(max_shard_size))
    problems.add(Opt{"max-shard-size"}, ' ', quote(max_shard_size),
                 " is not a size; wanted a number with MB, GB, MiB or GiB, such as 5GB");
  if (vocab_file.empty() != merge_file.empty())
    problems.add(Opt{vocab_file.empty() ? "merge-file" : "vocab-file"}, " needs ",
                 Opt{vocab_file.empty() ? "vocab-file" : "merge-file"});
  if (!tokenizer.empty() + !tokenizer_model.empty() + !vocab_file.empty() > 1)
    problems.add(Opt{"tokenizer"}, ", ", Opt{"tokenizer-model"}, " and ", Opt{"vocab-file"},
                 " each name a tokenizer; give one of them");
  if (dtype == "q8_0" && to != "gguf") problems.add(Opt{"dtype"}, " q8_0 needs ", Opt{"to"}, " gguf");
  if (to != "megatron" && (tensor > 1 || pipeline > 1))
    problems.add(Opt{"tp"}, " and ", Opt{"pp"}, " need ", Opt{"to"},
                 " megatron; the other formats have no parallel layout");
}

SourceOptions ConvertConfig::source_options() const {
  return {.vocab_size = vocab_size, .heads = heads, .crc = crc ? CrcCheck::kYes : CrcCheck::kNo};
}

}  // namespace megalith
