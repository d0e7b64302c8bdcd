#include "libcore/dialects/paddle/paddle_config.h"

#include <algorithm>

#include "libcore/base/text.h"

namespace megalith {
namespace {

/// The names given to --report-to; one word may hold several, separated by commas.
std::vector<std::string> reporters(const PaddleNames& config) {
  std::vector<std::string> names;
  for (const std::string& word : config.report_to)
    for (const std::string& name : split(word, ',')) names.emplace_back(trim(name));
  return names;
}

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void PaddleNames::validate(Problems& problems) const {
  for (const std::string& name : reporters(*this))
    if (name == "wandb")
      problems.add(Opt{"report-to"},
                   " wandb is not supported; give tensorboard, and `wandb sync` its folder");
    else if (!among({"tensorboard", "visualdl", "all", "none"}, name))
      problems.refuse({"report-to"}, quote(name), "tensorboard, visualdl, all or none");
  if (data_degree && *data_degree > 1)
    problems.add(Opt{"data-parallel-degree"}, ' ', *data_degree, " is not supported: ", Opt{"sharding"},
                 " shards over all data-parallel ranks; leave it out");
}

void PaddleNames::check_sharding(int data_ranks, Problems& problems) const {
  if (sharding_degree && *sharding_degree > 0 && *sharding_degree != data_ranks)
    problems.add(Opt{"sharding-parallel-degree"}, ' ', *sharding_degree, ": ", Opt{"sharding"},
                 " shards over all ", data_ranks, " data-parallel ranks; leave it out");
}

void PaddleConfig::validate(Problems& problems) const {
  PaddleNames::validate(problems);
  if (continue_training.value_or(false) && model.empty())
    problems.add(Opt{"continue-training"}, " needs ", Opt{"model-name-or-path"}, " DIR");
  if (do_train && !*do_train && !do_eval.value_or(false))
    problems.add(Opt{"do-train"}, " false without ", Opt{"do-eval"}, " leaves nothing to do");
}

std::string PaddleNames::tensorboard(const std::string& output) const {
  const std::vector<std::string> names = reporters(*this);
  const bool wanted = among(names, "tensorboard") || among(names, "visualdl") || among(names, "all");
  if (!wanted || among(names, "none")) return {};
  if (!logging_dir.empty()) return logging_dir;
  return output.empty() ? "runs" : output + "/runs";
}

bool PaddleNames::wants_visualdl() const {
  return among(reporters(*this), "visualdl");
}

template std::vector<Field> fields_of<PaddleNames>(PaddleNames&);

}  // namespace megalith
