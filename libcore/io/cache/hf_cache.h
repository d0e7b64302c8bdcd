#pragma once

#include <optional>
#include <string>

namespace megalith {

/// Whether `name` could be the id of a model on the Hugging Face hub: "gpt2", "openai-community/gpt2".
bool is_hub_id(const std::string& name);

/// Finds a model in huggingface_hub's local cache by its hub id. Returns the folder with the snapshot of the
/// model's main branch, or nothing if the model was never downloaded. Never downloads. The cache is the first
/// of these folders whose variable is set: $HF_HUB_CACHE, $HUGGINGFACE_HUB_CACHE, $HF_HOME/hub,
/// $XDG_CACHE_HOME/huggingface/hub, $HOME/.cache/huggingface/hub.
std::optional<std::string> hub_snapshot(const std::string& id);

/// Resolves the name of a model as a user gives it: returns `name` if it is an existing path, otherwise the
/// snapshot of the model with this hub id, otherwise `name` unchanged.
std::string path_or_snapshot(const std::string& name);

/// Text to add to a message about a path that does not exist. If `name` could be a hub id, says that the
/// hub's cache has no such model and what to do; otherwise empty.
std::string hub_remedy(const std::string& name);

}  // namespace megalith
