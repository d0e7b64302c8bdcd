#pragma once

#include <optional>
#include <string>

namespace megalith {

/// Whether `name` could be the id of a model on the Hugging Face hub: "gpt2", "openai-community/gpt2".
bool is_hub_id(const std::string& name);

/// The folder of a model that was downloaded earlier, by its hub id: the snapshot of its main branch in the
/// first of $HF_HUB_CACHE, $HUGGINGFACE_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub and
/// ~/.cache/huggingface/hub that is set, in the layout of huggingface_hub. Nothing if it is not there.
/// Nothing is downloaded.
std::optional<std::string> hub_snapshot(const std::string& id);

/// The file or folder that a user's word means: itself if it exists, else the snapshot of that id, else
/// itself.
std::string path_or_snapshot(const std::string& name);

/// For a message about a path that does not exist: empty, or that the hub's cache has no such model and what
/// to do.
std::string hub_remedy(const std::string& name);

}  // namespace megalith
