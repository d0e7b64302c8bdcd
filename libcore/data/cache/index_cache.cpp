#include "libcore/data/cache/index_cache.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <span>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/data/cache/npy_file.h"
#include "libcore/data/samples/blend_order.h"
#include "libcore/data/samples/gpt_index_writer.h"
#include "libcore/threads/beside.h"

namespace megalith {
namespace {

/// The .npy files of an index.
class NpyArrays {
 public:
  explicit NpyArrays(const std::string& base) : base_(base) {}
  template <class T>
  void begin(const char* name, int64_t rows, int64_t columns) {
    const std::string shape = columns == 1 ? concat('(', rows, ",)") : concat('(', rows, ", ", columns, ')');
    file_.emplace(concat(base_, name, ".npy"), npy_type<T>(), shape);
  }
  template <class T>
  void add(std::span<const T> part) {
    file_->add(part);
  }
  void end() {
    file_->finish();
    file_.reset();
  }

 private:
  const std::string& base_;
  std::optional<NpyFile> file_;
};

void require_samples(const IndexCache& cache, const SplitPlan& plan, const std::vector<int64_t>& taken) {
  for (size_t i = 0; i < taken.size(); ++i)
    if (taken[i] > plan.sizes[i])
      fail(ErrorKind::kUsage, cache.open.datasets[plan.datasets[i]].prefix(), ", split ",
           kSplitNames[plan.split], ": the blend asks for ", taken[i], " samples, it has ", plan.sizes[i],
           "; Megatron refuses this, too: raise --mid-level-dataset-surplus, or ask for fewer samples");
}

/// Writes an index of a blend; returns its bytes.
uint64_t write_blend(const IndexCache& cache, const SplitPlan& plan, const std::string& base) {
  constexpr int64_t kBlock = int64_t{1} << 16;  // samples that are written at a time
  BlendOrder order = plan.mix == SplitPlan::Mix::kExhaustive ? BlendOrder::exhaustive(plan.sizes)
                                                             : BlendOrder::by_weights(plan.shares);
  const std::string shape = concat('(', plan.size, ",)");
  NpyFile datasets(base + "dataset_index.npy", npy_type<int16_t>(), shape);
  NpyFile samples(base + "dataset_sample_index.npy", npy_type<int64_t>(), shape);
  std::vector<int16_t> dataset;
  std::vector<int64_t> sample;
  for (int64_t done = 0; done < plan.size; done += kBlock) {
    dataset.resize(static_cast<size_t>(std::min(kBlock, plan.size - done)));
    sample.resize(dataset.size());
    order.next(dataset, sample);
    datasets.add(std::span<const int16_t>(dataset));
    samples.add(std::span<const int64_t>(sample));
  }
  require_samples(cache, plan, order.taken());
  datasets.finish();
  samples.finish();
  return static_cast<uint64_t>(plan.size) * (sizeof(int16_t) + sizeof(int64_t));
}

/// Syncs each file system that holds one of the folders, once: thousands of files would wait for the disk one
/// by one.
void sync_file_systems(const std::set<std::string>& folders) {
  std::set<dev_t> synced;
  for (const std::string& folder : folders) {
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat found {};
    const bool good =
        fd >= 0 && ::fstat(fd, &found) == 0 && (!synced.insert(found.st_dev).second || ::syncfs(fd) == 0);
    const int reason = errno;
    if (fd >= 0) ::close(fd);
    if (!good) fail(ErrorKind::kIo, folder, ": cannot sync: ", std::strerror(reason));
  }
}

/// Writes the files of one cache, in several threads, each of which takes the next piece of work.
class Writer {
 public:
  explicit Writer(const IndexCache& cache) : cache_(cache) {
    for (const SplitPlan* plan : cache.plans)
      if (plan->mix != SplitPlan::Mix::kNone && !cache.folder.empty()) work_.push_back({plan, kBlend});
    for (const SplitPlan* plan : cache.plans)
      for (size_t i = 0; i < plan->datasets.size(); ++i) work_.push_back({plan, i});
  }

  IndexCacheCounts write() {
    run_beside(std::max<size_t>(1, std::min(cache_.threads, work_.size())), [&](size_t) {
      try {
        for (size_t i = next_++; i < work_.size(); i = next_++) write(work_[i]);
      } catch (...) {
        next_ = work_.size();  // the other threads end after what they are doing
        throw;
      }
    });
    sync_file_systems(folders_);
    return counts_;
  }

 private:
  static constexpr size_t kBlend = SIZE_MAX;
  struct Work {
    const SplitPlan* plan;
    size_t number;  // of the dataset, or kBlend
  };

  void write(const Work& work) {
    const CacheNames names(cache_.open.blend.prefixes, cache_.terms, *work.plan);
    const CacheName name = work.number == kBlend ? names.blend() : names.dataset(work.number);
    const std::string folder = folder_of(work);
    if (!begin(folder, name.base)) return;
    const std::string base = (std::filesystem::path(folder) / name.base).string();
    std::filesystem::remove(base + "description.txt");
    const uint64_t bytes =
        work.number == kBlend ? write_blend(cache_, *work.plan, base) : write_dataset(work, base);
    AtomicFile description(base + "description.txt");
    description.write(name.description);
    description.flush();
    description.publish();
    count(work, bytes);
  }

  uint64_t write_dataset(const Work& work, const std::string& base) const {
    const IndexedDataset& data = cache_.open.datasets[work.plan->datasets[work.number]];
    GptIndexMaker maker(data, work.plan->specs[work.number]);
    NpyArrays arrays(base);
    GptIndexWriter(maker, arrays).write();
    data.idx().forget(0, data.idx().size());
    return maker.plan().bytes();
  }

  std::string folder_of(const Work& work) const {
    if (!cache_.folder.empty()) return cache_.folder;
    return cache_.open.datasets[work.plan->datasets[work.number]].prefix() + "/cache/" +
           cache_.terms.dataset_class + "_indices";
  }

  /// Whether these files are still to be written: a dataset that is named twice has the same ones.
  bool begin(const std::string& folder, const std::string& base) {
    const std::lock_guard lock(mutex_);
    if (folders_.insert(folder).second) make_directories(folder);
    return names_.insert(folder + '/' + base).second;
  }

  void count(const Work& work, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const bool blend = work.number == kBlend;
    ++(blend ? counts_.blends : counts_.datasets);
    if (blend || work.plan->mix == SplitPlan::Mix::kNone) counts_.samples += work.plan->size;
    counts_.bytes += bytes;
  }

  const IndexCache& cache_;
  std::vector<Work> work_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;  // guards the following
  std::set<std::string> folders_, names_;
  IndexCacheCounts counts_;
};

}  // namespace

IndexCacheCounts write_index_cache(const IndexCache& cache) {
  return Writer(cache).write();
}

}  // namespace megalith
