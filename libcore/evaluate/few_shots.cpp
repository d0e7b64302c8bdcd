#include "libcore/evaluate/few_shots.h"

#include "libcore/base/error.h"

namespace megalith {
namespace {

bool leaves_out(OwnExample own, bool own_file) {
  return own == OwnExample::kLeftOut || (own == OwnExample::kLeftOutOfOwnFile && own_file);
}

}  // namespace

FewShots::FewShots(const TaskItems& task, const ExamplePool& pool, int64_t count, int64_t seed)
    : pool_(pool),
      count_(static_cast<size_t>(count)),
      leaves_out_(leaves_out(task.own, pool.own)),
      random_(static_cast<uint64_t>(seed)) {
  if (count_ > 0) want(count_ + (leaves_out_ ? 1 : 0), pool_.items.size());
}

void FewShots::want(size_t needed, size_t there) const {
  if (needed > there)
    fail(ErrorKind::kUsage, "--", pool_.names.fewshots, ' ', count_, " needs ", needed,
         " items to draw from, ", pool_.path, " has ", there, "; give less, or a larger file in --",
         pool_.names.fewshot_data);
}

// One item more than needed is drawn, so that one that equals the item can be left out. If several do, all is
// drawn again from the others.
std::vector<const TaskItem*> FewShots::draw(const TaskItem& item) {
  std::vector<const TaskItem*> out;
  for (const size_t place : random_.sample(pool_.items.size(), count_ + (leaves_out_ ? 1 : 0)))
    if (const TaskItem& drawn = pool_.items[place]; !leaves_out_ || drawn.source != item.source)
      out.push_back(&drawn);
  if (out.size() >= count_) {
    out.resize(count_);
    return out;
  }
  std::vector<const TaskItem*> others;
  for (const TaskItem& one : pool_.items)
    if (one.source != item.source) others.push_back(&one);
  want(count_, others.size());
  out.clear();
  for (const size_t place : random_.sample(others.size(), count_)) out.push_back(others[place]);
  return out;
}

std::string FewShots::context(const TaskItem& item) {
  std::string out;
  if (count_ > 0)
    for (const TaskItem* const example : draw(item))
      out += concat(example->context, kTargetDelimiter, example->continuations[example->answer], "\n\n");
  return out += item.context;
}

}  // namespace megalith
