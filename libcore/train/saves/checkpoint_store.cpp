#include "libcore/train/saves/checkpoint_store.h"

#include <utility>

#include "libcore/base/error.h"

namespace megalith {
namespace {

auto& stores() {
  static std::map<CheckpointFormat, std::unique_ptr<const CheckpointStore>> all;
  return all;
}

}  // namespace

const std::map<CheckpointFormat, std::unique_ptr<const CheckpointStore>>& checkpoint_stores() {
  return stores();
}

bool add_checkpoint_store(CheckpointFormat format, std::unique_ptr<const CheckpointStore> store) {
  return stores().emplace(format, std::move(store)).second;
}

const CheckpointStore& store_of(CheckpointFormat format) {
  const auto found = checkpoint_stores().find(format);
  if (found == checkpoint_stores().end())
    fail(ErrorKind::kUsage, "--ckpt-format ", enum_name(format), " is not written; give another one");
  return *found->second;
}

std::unique_ptr<FoundCheckpoint> find_checkpoint(const CheckpointConfig& config) {
  const CheckpointPlace place{config.number ? config.save : load_path(config), config.number};
  if (place.path.empty()) return nullptr;
  for (const auto& [format, store] : checkpoint_stores())
    if (auto found = store->find(place)) return found;
  return nullptr;
}

}  // namespace megalith
