#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "tests/support/faults.h"

namespace megalith::test {

/// Simulates a file system on which a power failure may lose everything that was not synced.
class LossyDisk {
 public:
  /// Treats everything below the folder `root` as synced.
  explicit LossyDisk(const std::string& root);

  /// Applies a call on a path below `root` that run_logged() recorded.
  void apply(const FileCall& call);

  /// Writes to the folder `to` a state that could be found after a power failure. Files have their synced
  /// contents. For each directory entry, calls `kept`: if it returns true, the entry has its latest state,
  /// otherwise its synced state. Entries may be lost independently of each other, since only a sync orders
  /// them.
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
