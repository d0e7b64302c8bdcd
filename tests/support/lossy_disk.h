#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "tests/support/faults.h"

namespace megalith::test {

/// A file system of which a power failure certainly leaves only what was synced.
class LossyDisk {
 public:
  /// Treats everything below the folder `root` as synced.
  explicit LossyDisk(const std::string& root);

  /// Applies a call that run_logged() recorded, below `root`.
  void apply(const FileCall& call);

  /// Writes to the folder `to` what may be found after the power failure: the synced contents of files, and
  /// each directory entry in its synced state or, if `kept` returns true, in its latest state. Entries are
  /// independent of each other: only a sync orders them.
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
