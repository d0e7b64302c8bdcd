#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/config/checkpoint_config.h"
#include "libcore/config/data_config.h"
#include "libcore/config/parallel_config.h"
#include "libcore/config/tokenizer_config.h"
#include "libcore/config/train_config.h"
#include "libcore/options/cli.h"
#include "libcore/plan/request/plan_options.h"
#include "libcore/plan/request/run_words.h"
#include "libcore/plan/shape/model_shape.h"

namespace megalith {

/// The names of the options that a command gives, from any source. Sizes that are given are fixed; the other
/// sizes are searched.
struct GivenOptions {
  using Names = std::set<std::string, std::less<>>;
  Names anywhere = {}, on_command_line = {};
  std::string config_file = {};  // the file of --config
  RunWords words = {};           // the given options that no plan changes

  /// Adds the names of those `fields` that were given; `options` must contain all of them.
  void add(const std::vector<Field>& fields, const Options& options);
};

/// Everything that determines a plan: the planner's own options and all options of a training command, so
/// that a training script plans its run when only the executable is replaced.
struct PlanCommand {
  PlanOptions plan;
  ModelShape model;
  ParallelConfig parallel;
  TrainConfig train;
  DataConfig data;
  CheckpointConfig checkpoint;
  TokenizerConfig tokenizer;
  /// Whether the plan is for a run of our trainer that begins now, in the precision of its own options.
  bool trains_here = false;
  /// Whether the environment's WORLD_SIZE counts servers, as on PAI's DLC (--task-type).
  bool counts_servers = false;
  size_t columns = 0;  // width of the terminal for the answer; 0: unlimited lines

  /// Set between read() and check() by a program that has other options for these values: the folder of the
  /// model whose shape is planned; and the option that gives the number of data-parallel ranks, with that
  /// number (0: not given).
  std::string model_folder;
  std::pair<const char*, int> data_ranks = {"", 0};

  GivenOptions given = {};  // set by check()
  bool gives(std::string_view option) const { return given.anywhere.contains(option); }

  void add_to(Options&);
  /// Call after Options::read(): takes the shape of --hf, and completes what a plan depends on. `groups`: the
  /// program's own groups of options that are checked too. kUsage with every complaint.
  void check(Options&, std::vector<std::string> groups = {});
};

}  // namespace megalith
