#include "libcore/plan/request/plan_command.h"

#include "libcore/config/precedence.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/io/files/file.h"
#include "libcore/json/small_json.h"
#include "libcore/plan/log/run_log.h"
#include "libcore/plan/shape/hf_shape.h"

namespace megalith {
namespace {

GivenOptions given_in(PlanCommand& command, const Options& options) {
  GivenOptions given{.config_file = options.config_file(), .words = run_words(options)};
  given.add(fields_of(command.plan), options);
  given.add(fields_of(command.model), options);
  given.add(fields_of(command.parallel), options);
  given.add(fields_of(command.train), options);
  return given;
}

}  // namespace

void GivenOptions::add(const std::vector<Field>& fields, const Options& options) {
  for (const Field& field : fields) {
    if (options.given(field.name)) anywhere.insert(field.name);
    if (options.on_command_line(field.name)) on_command_line.insert(field.name);
  }
}

void PlanCommand::add_to(Options& options) {
  options.add("Planning", plan).add("Model", model).add("Parallelism", parallel).add("Training", train);
  options.add("Data", data).add("Checkpoint", checkpoint).add("Tokenizer", tokenizer);
}

void PlanCommand::check(Options& options, std::vector<std::string> groups) {
  set_aside_contradicted(train, options);
  if (!plan.hf.empty()) {  // the command line's own sizes take precedence
    plan.hf = hf_config_file(plan.hf);
    ModelShape shape = parse_hf_shape(load_small(plan.hf), plan.hf);
    if (shape.latent_attention) shape.kv_channels = 0;  // derived from --v-head-dim
    options.adopt(to_json(shape), plan.hf, {"Model"});
  }
  if (!model_folder.empty()) options.adopt(to_json(shape_of_model(model_folder)), model_folder, {"Model"});
  if (!plan.verify_log.empty())  // the rest of the log is read when it is compared with the plan
    options.adopt(needed_of(read_run_log(plan.verify_log)), plan.verify_log,
                  {"Model", "Training", "Parallelism"});
  groups.insert(groups.end(), {"Planning", "Model", "Tokenizer"});
  options.check(groups);
  options.tell_ignored();
  train.finish();
  given = given_in(*this, options);
}

}  // namespace megalith
