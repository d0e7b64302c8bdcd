#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "tests/support/faults.h"

namespace megalith::test {

/// A file system of which only what was synced is sure to be there after the supply fails.
class LossyDisk {
 public:
  /// Takes what lies below the folder `root` as synced.
  explicit LossyDisk(const std::string& root);

  /// Does what run_logged() saw, below `root`.
  void apply(const FileCall& call);

  /// Writes to the folder `to` what is found after the loss: file contents as synced; each entry of a folder
  /// as synced or, where `kept` says so, as it was (each by itself: nothing orders them but a sync).
  void restore(const std::string& to, const std::function<bool()>& kept) const;

 private:
  struct Node {
    bool folder = false;
    std::string data = {}, synced_data = {};
    std::map<std::string, std::shared_ptr<Node>> entries = {}, synced_entries = {};
  };
  static std::shared_ptr<Node> load(const std::string& path);
  static void write(const Node& node, const std::string& to, const std::function<bool()>& kept);
  Node& parent(const std::string& path);
  std::shared_ptr<Node>& entry(const std::string& path);

  std::string root_;
  std::shared_ptr<Node> top_;
  std::map<std::string, std::shared_ptr<Node>> nameless_;
};

}  // namespace megalith::test
