#pragma once

#include <array>
#include <string>
#include <vector>

namespace megalith {

/// Existing folders as canonical paths, each once, in the order in which they were added.
class FolderList {
 public:
  void add(const std::string& folder);
  std::vector<std::string> take() { return std::move(folders_); }

 private:
  std::vector<std::string> folders_;
};

/// Where the plugins of this build are: the folder of this library, and lib/ next to the program's folder.
std::vector<std::string> own_library_folders();

/// A plugin, libmegalith_NAME.so, that an installation may have, and what needs it.
struct PluginFacts {
  const char* name;
  const char* purpose;
  const char* package = "";  // a build has the plugin only where this package is; empty: every build has it
};
inline constexpr std::array<PluginFacts, 8> kPlugins = {
    {{"cuda", "--device cuda"},
     {"decoder", "compressed inputs"},
     {"deflate", "torch's .pt files, Parquet with checksums"},
     {"gloo", "ranks that are processes", "libgloo-dev"},
     {"oniguruma", "expressions of tokenizers with lookbehind and the like", "libonig-dev"},
     {"onednn", "matrix products on the CPU"},
     {"sentencepiece", "SentencePiece models"},
     {"yaml", "YAML files"}}};

/// The names of the plugins that are in one of the folders.
std::vector<std::string> plugins_in(const std::vector<std::string>& folders);

}  // namespace megalith
