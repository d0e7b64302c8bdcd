#include "libcore/dialects/megatron/wandb.h"

#include <set>
#include <string>

#include "libcore/base/log.h"
#include "libcore/base/shell_word.h"
#include "libcore/options/fields.h"

namespace megalith {
namespace {

struct WandbOptions {
  std::string project, run, entity, folder;

  template <class V>
  void fields(V&& v) {
    v("wandb-project", project, "Project.");
    v("wandb-exp-name", run, "Name of the run.");
    v("wandb-entity", entity, "User or team.");
    v("wandb-save-dir", folder, "Folder of its files.");
  }
};

}  // namespace

void explain_wandb(Options& options) {
  options.rule([&options](Problems& problems) {
    WandbOptions wandb;
    const std::set<std::string> given = options.take_ignored(fields_of(wandb), problems);
    if (given.empty()) return;
    for (const std::string& name : given) options.note_ignored("--" + name);
    log("nothing is sent to Weights & Biases: give --tensorboard-dir DIR, then wandb sync --sync-tensorboard",
        wandb.project.empty() ? std::string() : " --project " + shell_word(wandb.project), " DIR");
  });
}

}  // namespace megalith
