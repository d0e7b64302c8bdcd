#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libcore/base/python_random.h"
#include "libcore/evaluate/evaluate_config.h"
#include "libcore/evaluate/task_items.h"

namespace megalith {

/// The items that may be examples of others.
struct ExamplePool {
  std::span<const TaskItem> items;
  std::string path;            // of their file, for messages
  bool own = false;            // whether it is the file of the items that are scored
  TaskOptionNames names = {};  // for messages
};

/// What stands between a context and its continuation, unless the continuation has it.
inline constexpr const char* kTargetDelimiter = " ";

/// Draws the examples before items of a task. Draws depend on the seed and on the items drawn for before.
class FewShots {
 public:
  /// `count`: the number of examples of an item; 0 for tasks of kind kText. kUsage if the pool is too small.
  FewShots(const TaskItems& task, const ExamplePool& pool, int64_t count, int64_t seed);

  /// The examples for the next item, each with its answer and a blank line, followed by its context.
  std::string context(const TaskItem& item);

 private:
  std::vector<const TaskItem*> draw(const TaskItem& item);
  void want(size_t needed, size_t there) const;

  ExamplePool pool_;
  size_t count_;
  bool leaves_out_;
  PythonRandom random_;
};

}  // namespace megalith
