#pragma once

#include <optional>
#include <string>

namespace megalith {

/// Whether `name` could be a model's id on the Hugging Face hub: "gpt2", "openai-community/gpt2".
bool is_hub_id(const std::string& name);

/// The folder of a model that was downloaded before, by its hub id: the snapshot of its branch main in
/// $HF_HUB_CACHE, $HUGGINGFACE_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub or
/// ~/.cache/huggingface/hub, the first of these that is set, as huggingface_hub lays it out. Nothing where it
/// is not there. Nothing is downloaded.
std::optional<std::string> hub_snapshot(const std::string& id);

/// The file or folder that a user's word names: itself where it is there, else the snapshot of that id, else
/// itself.
std::string path_or_snapshot(const std::string& name);

/// For a message about a path that is not there: "", or that the hub's cache has no such model and what to
/// do.
std::string hub_remedy(const std::string& name);

}  // namespace megalith
