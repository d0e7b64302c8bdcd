#include "libcore/plan/request/pipeline_cut.h"

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/dialects/megatron/pipeline_layout.h"

namespace megalith {
namespace {

/// The layers of --pipeline-layers: "7,8,8,7", in one word or in several.
std::vector<int> stages_of_list(const PlanCommand& command) {
  std::vector<int> stages;
  for (const std::string& word : split(join(command.parallel.pipeline_layers, ","), ',')) {
    const auto layers = parse_int(word);
    if (!layers || *layers < 1 || *layers > command.model.layers)
      fail(ErrorKind::kUsage, "--pipeline-layers: ", quote(word), " is not a number of layers from 1 to ",
           command.model.layers, " (--num-layers)");
    stages.push_back(static_cast<int>(*layers));
  }
  return stages;
}

/// The layers of all stages, if the command has such a table; empty: it has none.
std::vector<int> table_of(const PlanCommand& command) {
  const bool list = !command.parallel.pipeline_layers.empty();
  const std::string& layout = command.plan.pipeline_layout;
  std::vector<int> stages = list ? stages_of_list(command) : std::vector<int>{};
  if (layout.empty()) return stages;
  if (list)
    fail(ErrorKind::kUsage,
         "--pipeline-model-parallel-layout and --pipeline-layers set the same property; leave one of them "
         "out");
  return stages_of_layout(layout, ModelShape::kMostLayers, "--pipeline-model-parallel-layout");
}

/// Whether the command says how many layers the first or the last stage has.
bool names_an_end(const PlanCommand& command) {
  return command.parallel.first_layers || command.parallel.last_layers || command.plan.account_embedding ||
         command.plan.account_loss;
}

void fix_stages(PlanRequest& request) {
  const PlanCommand& command = request.command;
  std::vector<int>& table = request.problem.stage_layers = table_of(command);
  std::optional<int>& pipeline = request.fixed.pipeline;
  const auto cut = command.plan.base().cut;
  if (table.empty() && pipeline && cut && !names_an_end(command)) table = cut(command.model, *pipeline);
  if (table.empty()) return;
  const auto stages = static_cast<int>(table.size());
  if (pipeline && *pipeline != stages)
    fail(ErrorKind::kUsage, "the table of the pipeline has ", stages,
         " stages, --pipeline-model-parallel-size is ", *pipeline,
         "; tables of interleaved stages are not planned");
  pipeline = stages;
  if (names_an_end(command))
    fail(ErrorKind::kUsage,
         "--pipeline-layers or --pipeline-model-parallel-layout names every stage; leave out the options for "
         "the first and the last");
}

/// The layers that an option gives for a stage. kUsage if the model has fewer.
std::optional<int> layers_of_stage(const char* option, std::optional<int> named, int layers) {
  if (named && *named > layers)
    fail(ErrorKind::kUsage, "--", option, ' ', *named, " is more than the ", layers, " layers of the model");
  return named;
}

/// Fixes whether the embedding and the head count as a layer each (L2). `layers` includes them if they count.
void fix_counted_ends(PlanRequest& request, int layers) {
  const PlanOptions& plan = request.command.plan;
  Fixed& fixed = request.fixed;
  if (!plan.account_embedding && !plan.account_loss) return;
  if (!fixed.pipeline)
    fail(ErrorKind::kUsage,
         "--account-for-embedding-in-pipeline-split and --account-for-loss-in-pipeline-split need "
         "--pipeline-model-parallel-size");
  if (layers % *fixed.pipeline != 0)
    fail(ErrorKind::kUsage, "L2: ", layers,
         " layers, embedding and head counted, are not a multiple of pipeline ", *fixed.pipeline,
         nearest_multiples(layers, *fixed.pipeline));
  if (fixed.first_layers || fixed.last_layers)
    fail(ErrorKind::kUsage,
         "--decoder-first-pipeline-num-layers and --decoder-last-pipeline-num-layers set what "
         "--account-for-embedding-in-pipeline-split and --account-for-loss-in-pipeline-split set; give one "
         "pair of them");
  const int counted = layers / *fixed.pipeline;
  if (plan.account_embedding) fixed.first_layers = counted - 1;
  if (plan.account_loss) fixed.last_layers = counted - 1;
  fixed.counts_embedding = plan.account_embedding;
  fixed.counts_head = plan.account_loss;
}

void fix_chunks(PlanRequest& request, int layers) {
  const auto& each = request.command.parallel.layers_per_chunk;
  if (!each) return;
  const auto& pipeline = request.fixed.pipeline;
  if (!pipeline)
    fail(ErrorKind::kUsage, "--num-layers-per-virtual-pipeline-stage needs --pipeline-model-parallel-size");
  const int64_t together = int64_t{*each} * *pipeline;
  if (layers % together != 0)
    fail(ErrorKind::kUsage, "V1: ", layers, " layers are not a multiple of pipeline ", *pipeline, " * ",
         *each, " of --num-layers-per-virtual-pipeline-stage");
  request.fixed.chunks = static_cast<int>(layers / together);
  const PlanCommand& command = request.command;
  if (*request.fixed.chunks > 1 && !request.problem.stage_layers.empty() && table_of(command).empty())
    fail(ErrorKind::kUsage, "--num-layers-per-virtual-pipeline-stage ", *each, ": --software ",
         command.plan.base().name, " divides ", command.model.layers, " layers over ", *pipeline,
         " stages by a rule of its own, which is not planned with chunks; leave the option out");
}

}  // namespace

void fix_pipeline(PlanRequest& request) {
  const PlanCommand& command = request.command;
  const int layers = command.model.layers;
  request.fixed.first_layers =
      layers_of_stage("decoder-first-pipeline-num-layers", command.parallel.first_layers, layers);
  request.fixed.last_layers =
      layers_of_stage("decoder-last-pipeline-num-layers", command.parallel.last_layers, layers);
  fix_stages(request);
  const int counted = layers + command.plan.account_embedding + command.plan.account_loss;
  fix_counted_ends(request, counted);
  fix_chunks(request, counted);
}

}  // namespace megalith
