#include "libcore/io/files/mapped_ranges.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <mutex>
#include <string_view>

#include <unistd.h>

#include "libcore/base/error.h"

namespace megalith {

struct MappedRange::Entry {
  const char* begin;
  size_t bytes;
  std::string path;
  size_t slot;
};

namespace {

// One slot for each mapped range. The signal handler must not lock, so it reads the slots without a lock: an
// entry is complete before its slot points to it.
constexpr size_t kSlots = 4096;
std::array<std::atomic<const void*>, kSlots> slots;
std::mutex slots_lock;
const char* program = "";

/// Builds a line of text and writes it. Only calls functions that a signal handler may call.
class Line {
 public:
  void add(std::string_view text) {
    const size_t n = std::min(text.size(), text_.size() - size_);
    std::memcpy(text_.data() + size_, text.data(), n);
    size_ += n;
  }
  void add(size_t number) {
    std::array<char, 20> digits;
    size_t first = digits.size();
    do digits[--first] = static_cast<char>('0' + number % 10);
    while ((number /= 10) > 0);
    add({digits.data() + first, digits.size() - first});
  }
  void write() const {
    const ssize_t written = ::write(STDERR_FILENO, text_.data(), size_);
    static_cast<void>(written);  // a failed write cannot be reported anywhere
  }

 private:
  std::array<char, 8192> text_;
  size_t size_ = 0;
};

template <class Entry>
void end_with_place(const Entry& entry, size_t place) {
  Line line;
  line.add(program);
  line.add(": error: ");
  line.add(entry.path);
  line.add(": cannot be read at byte ");
  line.add(place);
  line.add(": it had ");
  line.add(entry.bytes);
  line.add(
      " bytes when it was opened; it was truncated since then, or its disk failed; restore the file and run "
      "again\n");
  line.write();
  ::_exit(exit_code(ErrorKind::kData));
}

}  // namespace

MappedRange::MappedRange(const void* begin, size_t bytes, const std::string& path) {
  if (begin == nullptr) return;
  const std::lock_guard lock(slots_lock);
  for (size_t slot = 0; slot < kSlots; ++slot) {
    if (slots[slot].load(std::memory_order_relaxed) != nullptr) continue;
    entry_.reset(new Entry{static_cast<const char*>(begin), bytes, path, slot});
    slots[slot].store(entry_.get(), std::memory_order_release);
    return;
  }
}

void MappedRange::Remove::operator()(Entry* entry) const noexcept {
  slots[entry->slot].store(nullptr, std::memory_order_release);
  delete entry;
}

struct CutFiles {
  static void handle(int number, siginfo_t* info, void*) {
    using Entry = MappedRange::Entry;
    const auto* const at = static_cast<const char*>(info->si_addr);
    for (const auto& slot : slots) {
      const auto* const entry = static_cast<const Entry*>(slot.load(std::memory_order_acquire));
      if (entry && at >= entry->begin && at < entry->begin + entry->bytes)
        end_with_place(*entry, static_cast<size_t>(at - entry->begin));
    }
    std::signal(number, SIG_DFL);  // the instruction runs again and raises SIGBUS again
  }
};

void report_cut_files(const char* name) {
  program = name;
  struct sigaction action {};
  action.sa_sigaction = CutFiles::handle;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace megalith
