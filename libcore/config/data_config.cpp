#include "libcore/config/data_config.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "libcore/base/text.h"
#include "libcore/config/data_args.h"

namespace megalith {
namespace {

/// Whether `path` is a single folder or file, not the prefix of a dataset's files. (Without --data-cache-path
/// Megatron makes a folder with the name of the prefix, for its cache.)
bool names_text(const std::vector<std::string>& path) {
  std::error_code error;
  if (path.size() != 1 || std::filesystem::exists(path[0] + ".idx", error)) return false;
  return std::filesystem::is_directory(path[0], error) || std::filesystem::is_regular_file(path[0], error);
}

/// What is wrong with a path that was given as a dataset's prefix and is a folder or a file of another kind;
/// empty if it may be a dataset. A folder that holds datasets, or too much to look at, may be one.
std::string no_dataset(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int kLooked = 1000;
  std::error_code error;
  if (path.ends_with(".bin") || path.ends_with(".idx") || fs::exists(path + ".idx", error)) return {};
  bool files = false, json = false;
  const auto look = [&](const fs::path& file) {
    if (file.filename().string().starts_with('.')) return;
    files = true;
    json |= file.extension() == ".json" || file.extension() == ".jsonl";
  };
  if (fs::is_regular_file(path, error)) look(path);
  if (fs::is_directory(path, error)) {
    int entries = 0;
    for (fs::recursive_directory_iterator at(path, error); !error && at != fs::recursive_directory_iterator();
         at.increment(error)) {
      if (++entries > kLooked || at->path().extension() == ".idx") return {};
      if (at->is_regular_file(error)) look(at->path());
    }
  }
  if (!files) return {};
  return json
             ? " is loose JSON, not the prefix of a dataset; make a dataset of it with megalith-preprocess"
             : " is text, not the prefix of a dataset; give it to --train-data-path, or make a dataset of it "
               "with megalith-preprocess --text";
}

}  // namespace

bool DataConfig::reads_texts() const {
  return names_text(train_path.empty() ? valid_path : train_path);
}

/// Removes quotes around the value of --split: scripts that keep their options in an array pass the quotes
/// on. Megatron ignores them, since it only looks for numbers.
void DataConfig::finish() {
  std::erase_if(split, [](char c) { return c == '\'' || c == '"'; });
}

void DataConfig::read_words() {
  if (!args_file.empty() && !split_args_file.empty()) return;
  if (!args_file.empty() && data_path.empty()) {
    data_path = read_data_args(args_file);
    words_read = true;
  }
  if (!split_args_file.empty() && !has_own_paths()) {
    auto [train, valid, test] = read_split_data_args(split_args_file);
    train_path = std::move(train);
    valid_path = std::move(valid);
    test_path = std::move(test);
    words_read = true;
  }
}

namespace {
void validate_sources(const DataConfig& c, Problems& problems) {
  const bool both_files = !c.args_file.empty() && !c.split_args_file.empty();
  if (both_files)
    problems.add(Opt{"data-args-path"}, " and ", Opt{"per-split-data-args-path"},
                 " contradict each other; give one of them");
  if (!c.args_file.empty() && !c.data_path.empty() && !c.words_read)
    problems.add(Opt{"data-args-path"}, " and ", Opt{"data-path"},
                 " contradict each other; give one of them");
  if (!c.split_args_file.empty() && c.has_own_paths() && !c.words_read)
    problems.add(Opt{"per-split-data-args-path"}, " and ", Opt{"train-data-path"}, ", ",
                 Opt{"valid-data-path"}, " or ", Opt{"test-data-path"},
                 " contradict each other; give one of them");
  if (!c.data_path.empty() + c.has_own_paths() + c.mock > 1)
    problems.add(Opt{"data-path"}, ", ", Opt{"train-data-path"}, " (with ", Opt{"valid-data-path"}, " and ",
                 Opt{"test-data-path"}, ") and ", Opt{"mock-data"},
                 " contradict each other; give one of them");
  if (c.fim.on && (c.mock || c.reads_texts()))
    problems.add(Opt{"fim-data"}, " needs datasets of tokens; leave out ",
                 c.mock ? Opt{"mock-data"} : Opt{"fim-data"});
}
}  // namespace

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
    problems.refuse({"split"}, quote(split), "up to three weights, such as \"969,30,1\"");
  if (reads_texts() && !valid_path.empty() && !names_text(valid_path))
    problems.add(Opt{"valid-data-path"}, ' ', join(valid_path, " "), " is not text, although ",
                 Opt{"train-data-path"}, ' ', train_path[0],
                 " is; wanted one folder of texts, or one text file");
  if (reads_texts() && !test_path.empty())
    problems.add(Opt{"test-data-path"}, " is not supported with texts; give them to ",
                 Opt{"valid-data-path"});
  if (stride && !reads_texts())
    problems.add(Opt{"stride"}, ' ', *stride, " needs ", Opt{"train-data-path"},
                 " DIR, a folder of texts or a text file",
                 train_path.empty() ? std::string() : ", which " + quote(join(train_path, " ")) + " is not");
  for (const std::string& path : data_path)
    if (const std::string wrong = no_dataset(path); !wrong.empty())
      problems.add(Opt{"data-path"}, ' ', path, wrong);
  validate_sources(*this, problems);
  fim.validate(problems);
}

template std::vector<Field> fields_of<DataConfig>(DataConfig&);

}  // namespace megalith
