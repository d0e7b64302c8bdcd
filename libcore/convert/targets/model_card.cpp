#include "libcore/convert/targets/model_card.h"

#include <algorithm>
#include <filesystem>

#include "libcore/base/error.h"
#include "libcore/base/figures/picture.h"
#include "libcore/base/text.h"
#include "libcore/convert/sources/hf_config.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
constexpr const char* kPicture = "loss.svg";

std::string text_of(const Json& value) {
  return value.is_string() ? value.as_string() : value.dump();
}

// A cell of a Markdown table.
std::string cell(const Json& value) {
  std::string out;
  for (const char c : text_of(value)) {
    if (c == '\\' || c == '|' || c == '`' || c == '<') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string text_arg(const Json& args, const char* name) {
  const Json* value = args.find(name);
  return value && value->is_string() ? value->as_string() : std::string();
}

// The path of the run's log of JSON lines (train/log/metrics.h): the file that the run's options name, or a
// file of that name next to the checkpoint. Empty if there is none.
std::string metrics_file(const Json& args, const fs::path& checkpoint) {
  std::string path = text_arg(args, "log_json");
  if (const std::string report = text_arg(args, "report"); path.empty() && !report.empty())
    path = report + ".jsonl";
  if (path.empty()) return {};
  const fs::path folder = fs::absolute(checkpoint).lexically_normal(), name = fs::path(path).filename();
  for (const fs::path& place : {fs::path(path), folder / name, folder.parent_path() / name,
                                folder.parent_path().parent_path() / name})
    if (file_exists(place.string())) return place.string();
  return {};
}

// Reads the losses from a log. Lines that are not JSON objects are skipped, since a run that was killed may
// have left its last line incomplete.
LossHistory losses_in(const std::string& path) {
  LossHistory losses;
  for (const std::string& text : split(read_own_file(path), '\n')) {
    Json line;
    try {
      line = Json::parse(text, path);
    } catch (const Error&) {
      continue;
    }
    const Json *loss = line.find("loss"), *iteration = line.find("iteration");
    if (!loss || !loss->is_number() || !iteration || !iteration->is_int()) continue;
    const std::string type = text_arg(line, "type");
    if (type == "train") losses.add_train(iteration->as_int(), loss->as_double());
    if (type == "valid") losses.add_valid(iteration->as_int(), loss->as_double());
  }
  return losses;
}

// The losses of a checkpoint. The evaluation at the end of the run is read from the run's log, since it came
// after the save. If the checkpoint keeps no losses, as those of earlier versions, all are read from the log.
LossHistory losses_of(const ModelSource& source) {
  const std::string metrics = metrics_file(source.args(), source.path());
  LossHistory lines = metrics.empty() ? LossHistory{} : losses_in(metrics);
  if (source.losses().train().empty()) return lines;
  LossHistory losses = source.losses();
  const int64_t known = losses.valid().empty() ? 0 : losses.valid().rbegin()->first;
  for (const auto& [iteration, loss] : lines.valid())
    if (iteration >= known && iteration <= source.iteration()) losses.add_valid(iteration, loss);
  return losses;
}

int64_t log_interval(const Json& args) {
  const Json* value = args.is_object() ? args.find("log_interval") : nullptr;
  return value && value->is_int() && value->as_int() > 0 ? value->as_int() : 1;
}

// Example code that runs the model. Its prompt and its new tokens together fit in the model's positions: a
// prompt has at most one token per byte.
std::string snippet(int64_t positions) {
  constexpr int64_t kEnough = 50;
  const std::string prompt = positions >= 64 ? "def hello_world():" : "a";
  const int64_t room = positions - static_cast<int64_t>(prompt.size());
  return concat(
      "```python\nfrom transformers import pipeline\ngenerate = pipeline(\"text-generation\", "
      "\"PATH_OF_THIS_FOLDER\")\nprint(generate(\"",
      prompt, "\", max_new_tokens=", std::clamp<int64_t>(room, 1, kEnough),
      ")[0][\"generated_text\"])\n```\n\n");
}

std::string data_section(const Json& args) {
  std::string rows;
  for (const char* name : {"data_path", "split", "tokenizer_type", "seq_length", "global_batch_size",
                           "train_iters", "train_samples"})
    if (const Json* value = args.find(name);
        value && !value->is_null() && !text_of(*value).empty() && *value != Json::array())
      rows += concat("| ", name, " | ", cell(*value), " |\n");
  return rows.empty() ? rows : "## Data\n\n| option | value |\n|---|---|\n" + rows + "\n";
}

std::string options_section(const Json& args) {
  if (!args.is_object() || args.as_object().empty()) return {};
  std::string out =
      "## Options\n\n<details><summary>Every option of the run</summary>\n\n| option | value |\n|---|---|\n";
  for (const auto& [name, value] : args.as_object())
    if (!value.is_null()) out += concat("| ", name, " | ", cell(value), " |\n");
  return out + "\n</details>\n\n";
}

std::string loss_picture(const LossHistory& losses) {
  constexpr const char *kBlue = "#3b82f6", *kOrange = "#f97316";
  const ChartPoints smooth = smoothed(losses.train());
  return chart_file({"Training and validation loss by iteration", "nats a token"},
                    {{smooth.empty() ? "training" : "", kBlue, &losses.train(),
                      smooth.empty() ? ChartMark::kLine : ChartMark::kFaintLine},
                     {"training, smoothed", kBlue, &smooth},
                     {"validation", kOrange, &losses.valid(), ChartMark::kDottedLine}});
}

std::string loss_section(const LossHistory& losses, int64_t interval) {
  if (losses.train().empty()) return {};
  const double last = last_logged_mean(losses.train(), interval).value_or(losses.train().rbegin()->second);
  std::string out = concat("## Loss\n\n![training and validation loss by iteration](", kPicture,
                           ")\n\nTraining ", format_fixed(last, 4));
  if (!losses.valid().empty())
    out += concat(", validation ", format_fixed(losses.valid().rbegin()->second, 4));
  return out + " (nats a token).\n\n";
}

}  // namespace

std::map<std::string, std::string> model_card(const Conversion& conversion, const std::string& title,
                                              int64_t parameters) {
  const ModelSource& source = conversion.source;
  const ModelConfig& c = source.config();
  const NameMap& names = family_of(c).names;
  std::map<std::string, std::string> files;
  std::string card = concat("---\nlibrary_name: transformers\npipeline_tag: text-generation\ntags:\n- ",
                            names.family, "\n---\n\n# ", title, "\n\n");
  card += concat("A ", names.architecture, " of ", format_count(parameters), " parameters: ", c.layers,
                 " layers, width ", c.hidden, ", ", c.heads, " attention heads, vocabulary ",
                 format_count(c.vocab_size), ", context ", format_count(c.max_positions),
                 " tokens. Stored as ", name_of(conversion.main_dtype()), ".\n\n");
  if (source.iteration() != kRelease)
    card += concat("Trained with Megalith for ", format_count(source.iteration()), " iterations.\n\n");
  card += snippet(c.max_positions);
  const LossHistory losses = losses_of(source);
  if (!losses.train().empty()) files[kPicture] = loss_picture(losses);
  files["README.md"] = card + loss_section(losses, log_interval(source.args())) +
                       data_section(source.args()) + options_section(source.args());
  return files;
}

}  // namespace megalith
