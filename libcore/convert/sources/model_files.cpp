#include "libcore/convert/sources/model_files.h"

#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/convert/sources/megatron_source.h"
#include "libcore/io/cache/hf_cache.h"

namespace megalith {

void keeps_checkpoints(RunFiles& files, std::string_view option, const std::string& folder) {
  constexpr std::string_view kCheckpoints[] = {kTrackerFile, "iter_*", "release", "*.pth",
                                               // these are in ROOT/iter_NNNNNNN itself
                                               "tokenizer", "mp_rank_*"};
  files.keeps(option, folder, kCheckpoints);
}

void reads_model(RunFiles& files, std::string_view option, const std::string& name) {
  if (name.empty()) return;
  const std::string path = path_or_snapshot(name);
  keeps_checkpoints(files, option, path);
  constexpr std::string_view kAll[] = {"*"};
  if (file_exists(path + "/" + kIndexFile) || is_megatron(path)) files.keeps(option, path, kAll);
  if (!file_exists(path + "/" + kTrackerFile)) files.reads(option, path);
}

}  // namespace megalith
