#include "libcore/evaluate/task_specs.h"

#include <algorithm>
#include <filesystem>

#include "libcore/base/text.h"
#include "libcore/io/streams/decoder.h"

namespace megalith {
namespace {

/// "NAME=FILE" cut at its "=", or FILE alone.
struct NamedFile {
  std::string name, path;
};
NamedFile cut_name(const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos || word.find('/') < equals) return {{}, word};
  return {word.substr(0, equals), word.substr(equals + 1)};
}

std::vector<std::string> comma_separated(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const std::string& word : words)
    for (std::string& part : split(word, ',')) out.push_back(std::move(part));
  return out;
}

/// The name of a task of our own form: that of its file.
std::string stem_of(const std::string& path) {
  return std::filesystem::path(uncompressed_name(path)).stem().string();
}

std::string wanted_form() {
  return "NAME=FILE with NAME one of " + join(task_form_names(), ", ") + ", or a .jsonl FILE of our own form";
}

void add_task(const std::string& word, Opt option, std::vector<TaskSpec>& out, Problems& problems) {
  const auto [name, path] = cut_name(word);
  TaskSpec spec{.name = name.empty() ? stem_of(path) : name, .path = path, .form = find_task_form(name)};
  if (name.empty() && find_task_form(word) != nullptr)
    return problems.refuse(option, word, concat(word, "=FILE: tasks are files that you have"));
  if (spec.path.empty() || (!name.empty() && spec.form == nullptr)) {
    const auto names = task_form_names();
    const auto close = spec.form == nullptr ? nearest(name, names) : std::nullopt;
    return problems.refuse(option, word,
                           wanted_form() + (close ? "; did you mean " + *close + "?" : std::string()));
  }
  if (std::ranges::find(out, spec.name, &TaskSpec::name) != out.end())
    return problems.add(option, " names two tasks ", quote(spec.name), "; results need different names");
  out.push_back(std::move(spec));
}

void add_examples(const std::string& word, const TaskOptionNames& names, std::vector<TaskSpec>& specs,
                  Problems& problems) {
  const auto [name, path] = cut_name(word);
  const auto found = std::ranges::find(specs, name, &TaskSpec::name);
  if (found == specs.end() || path.empty())
    return problems.refuse(Opt{names.fewshot_data}, word,
                           concat("NAME=FILE with NAME a task of --", names.tasks));
  if (!found->examples.empty())
    return problems.add(Opt{names.fewshot_data}, " has two files for ", quote(name), "; give one");
  found->examples = path;
}

}  // namespace

std::vector<TaskSpec> task_specs(const TaskOptions& options, Problems& problems) {
  std::vector<TaskSpec> out;
  for (const std::string& word : comma_separated(options.tasks))
    add_task(word, Opt{options.names.tasks}, out, problems);
  for (const std::string& word : comma_separated(options.fewshot_data))
    add_examples(word, options.names, out, problems);
  return out;
}

void TaskOptions::validate(Problems& problems) const {
  task_specs(*this, problems);
  if (!fewshot_data.empty() && fewshots == 0)
    problems.add(Opt{names.fewshot_data}, " is not used without ", Opt{names.fewshots},
                 "; give both or neither");
}

}  // namespace megalith
