#include "libcore/train/run/dry_run.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "libcore/base/text.h"
#include "libcore/ops/backend/cuda_plugin.h"
#include "libcore/train/ranks/rank_device.h"
#include "libcore/train/schedules/schedule.h"
#include "libcore/train/step/layout.h"
#include "libcore/train/tasks/run_tasks.h"

namespace megalith {
namespace {

constexpr int kForwardColumns = 1,
              kBackwardColumns = 2;  // a backward pass takes about as long as two forward passes
constexpr size_t kShownSamples = 4, kShownTokens = 16;

/// Simulates a pipeline in which passes take kForwardColumns or kBackwardColumns and sends take no time.
class Player {
 public:
  Player(int ranks, int chunks, int microbatches) : ranks_(ranks), chunks_(chunks) {
    for (int rank = 0; rank < ranks; ++rank)
      orders_.push_back(plan_pipeline(rank, ranks, chunks, microbatches, ranks));
    lines_.resize(orders_.size());
  }

  std::vector<std::string> play() {
    std::vector<size_t> next(orders_.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t rank = 0; rank < orders_.size(); ++rank)
        while (next[rank] < orders_[rank].size() && draw(static_cast<int>(rank), orders_[rank][next[rank]])) {
          ++next[rank];
          moved = true;
        }
    }
    return lines_;
  }

 private:
  using Piece = std::tuple<bool, int, int>;  // forward, position in the chain of chunks, microbatch

  /// The column from which on a step's input is available; nothing if the input has not been computed yet.
  std::optional<size_t> ready(const Step& step, int place) const {
    const auto end = [&](bool forward, int at) -> std::optional<size_t> {
      const auto found = ends_.find({forward, at, step.microbatch});
      return found == ends_.end() ? std::nullopt : std::optional(found->second);
    };
    if (step.kind == Step::kForward) return place == 0 ? std::optional<size_t>(0) : end(true, place - 1);
    const bool last = place == ranks_ * chunks_ - 1;
    return last ? end(true, place) : end(false, place + 1);
  }

  bool draw(int rank, const Step& step) {
    const int place = step.chunk * ranks_ + rank;
    const auto from = ready(step, place);
    if (!from) return false;
    std::string& line = lines_[static_cast<size_t>(rank)];
    if (line.size() < *from) line.append(*from - line.size(), '.');
    const bool forward = step.kind == Step::kForward;
    line += static_cast<char>('0' + step.microbatch % 10);
    line.append(static_cast<size_t>((forward ? kForwardColumns : kBackwardColumns) - 1), '-');
    if (chunks_ > 1) line += static_cast<char>('a' + step.chunk % 26);
    ends_[{forward, place, step.microbatch}] = line.size();
    return true;
  }

  int ranks_, chunks_;
  std::vector<std::vector<Step>> orders_;
  std::vector<std::string> lines_;
  std::map<Piece, size_t> ends_;
};

std::string layout_text(const PretrainConfig& config) {
  const ParallelConfig& p = config.parallel;
  const Topology topology(p, p.world);
  std::string out = concat("layout: ", p.world, p.world == 1 ? " rank" : " ranks", " = tensor ", p.tensor,
                           " x context ", p.context, " x data ", p.data, " x pipeline ", p.pipeline, "\n");
  constexpr int kShownRanks = 64;
  for (int rank = 0; rank < std::min(p.world, kShownRanks); ++rank) {
    const Coord at = topology.coord(rank);
    out += concat("  rank ", rank, ": tensor ", at.tensor, ", pipeline ", at.pipeline, ", data ", at.data,
                  p.context > 1 ? concat(", context ", at.context) : std::string(), "\n");
  }
  if (p.world > kShownRanks) out += concat("  ... and ", p.world - kShownRanks, " more\n");
  return out;
}

std::string memory_text(const std::vector<ModelRank>& ranks) {
  std::string out = "memory of a rank, by its place in the model:\n";
  for (const ModelRank& rank : ranks)
    out += concat("  tensor ", rank.at.tensor, ", pipeline ", rank.at.pipeline, ": ",
                  format_count(rank.memory.parameters), " parameters; ", rank.memory.text(), "\n");
  return out;
}

std::string sample_text(const DataSet& data, int64_t index, const PretrainConfig& config,
                        const Tokenizer* tokenizer) {
  const auto length = static_cast<size_t>(config.model.seq_length);
  std::vector<int32_t> tokens(length), labels(length);
  std::vector<float> mask(length);
  data.read.read(index, {.tokens = tokens, .labels = labels, .loss_mask = mask});
  tokens.resize(std::min(length, kShownTokens));
  std::string out = concat("  sample ", index, ":");
  for (const int32_t id : tokens) out += concat(' ', id);
  if (length > tokens.size()) out += " ...";
  if (tokenizer) out += concat("  ", quote(tokenizer->decode(tokens)));
  return out + "\n";
}

}  // namespace

std::string schedule_picture(const ParallelConfig& parallel, const ModelConfig& model, int microbatches,
                             int columns) {
  const int chunks = parallel.chunks(model.layers);
  std::string out;
  const std::vector<std::string> lines = Player(parallel.pipeline, chunks, microbatches).play();
  const auto max_width = static_cast<size_t>(columns);
  for (size_t rank = 0; rank < lines.size(); ++rank)
    out += concat("  pipeline rank ", rank, " | ", lines[rank].substr(0, max_width),
                  lines[rank].size() > max_width ? " ..." : "", "\n");
  return out;
}

namespace {

/// What is known of the memory of GPUs without the run's ranks; nothing for a run on the CPU. Refuses ranks
/// that have no device, as the run does.
GpusOfRun first_gpu(const RunShape& run) {
  if (!on_gpu(run)) return {};
  const bool threads = run.parallel.world > 1 && run.parallel.processes == 0;
  return {.memory = {cuda_memory(0)}, .sharers = threads ? ranks_of_first_device(run.parallel.world) : 1};
}

}  // namespace

DryMemory dry_memory(const PretrainConfig& config) {
  RunShape run = run_shape(config);
  run.train.device = resolved_device(config.train.device);
  const MemoryLeft left = ask_memory(run, config.parallel.local_world, first_gpu(run));
  const std::unique_ptr<Communicator> alone = make_self_comm();
  RunTasks tasks(config, *alone);
  tasks.encode(config, run.train.device);
  run.task_bytes = tasks.bytes(run);
  SaveCopyChoice chosen =
      chosen_save_copy(config.train.eval_only ? CheckpointConfig{} : config.checkpoint, run, left);
  run.save_copy = chosen.copy;
  return {std::move(run), left, std::move(chosen.ranks)};
}

std::string dry_run_text(const PretrainConfig& config, const std::vector<ModelRank>& ranks,
                         const DataSets& data, const Tokenizer* tokenizer) {
  const RunShape run = run_shape(config);
  const BatchShape batch = batch_shape(run);
  std::string out = layout_text(config) + memory_text(ranks);
  if (data.held > 0)
    out += concat("memory of the data on this machine (order of samples, tokens of texts): ",
                  format_bytes(static_cast<double>(data.held)), "\n");
  out += concat("a step of ", *config.train.iters, ": ", config.train.global_batch, " samples of ",
                config.model.seq_length, " tokens, ", batch.microbatches, " microbatches of ",
                batch.micro_batch, " on each data-parallel rank\n");
  out += concat("order of a step (a digit: forward of that microbatch; with -: backward; ",
                run.parallel.chunks(config.model.layers) > 1 ? "a letter: the chunk; " : "", ".: waiting)\n");
  out += schedule_picture(config.parallel, config.model, batch.microbatches);
  out += "first samples:\n";
  const auto shown = std::min<int64_t>(static_cast<int64_t>(kShownSamples), config.train.global_batch);
  for (int64_t i = 0; i < shown; ++i) out += sample_text(data.train, i, config, tokenizer);
  return out;
}

}  // namespace megalith
